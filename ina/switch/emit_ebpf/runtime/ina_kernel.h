/* What XDP programs need of the kernel: contexts, helpers by their numbers and maps (UAPI
 * linux/bpf.h). No header of the kernel or of libbpf is needed. */
#ifndef INA_KERNEL_H
#define INA_KERNEL_H

#include "ina_base.h"

#define SEC(name) __attribute__((section(name), used))

struct xdp_md {
    uint32_t data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };
enum {
    MAP_HASH = 1,
    MAP_ARRAY = 2,
    MAP_PROG_ARRAY = 3,
    MAP_PERCPU_ARRAY = 6,
    MAP_LPM_TRIE = 11,
    MAP_HASH_OF_MAPS = 13,
    MAP_DEVMAP = 14,
    MAP_RINGBUF = 27,
};
enum { MAP_NO_PREALLOC = 1 };
enum { REDIRECT_BROADCAST = 1 << 3 };

struct bpf_spin_lock {
    uint32_t value;
};

static long (*bpf_tail_call)(struct xdp_md *ctx, const void *programs, uint32_t at) = (void *)12;
static long (*bpf_redirect_map)(const void *map, uint64_t key, uint64_t flags) = (void *)51;
static long (*bpf_ringbuf_output)(const void *ring, const void *data, uint64_t size,
                                  uint64_t flags) = (void *)130;
static void *(*bpf_map_lookup_elem)(const void *map, const void *key) = (void *)1;
static uint64_t (*bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static uint64_t (*bpf_ktime_get_ns)(void) = (void *)5;
static uint32_t (*bpf_get_prandom_u32)(void) = (void *)7;
static long (*bpf_xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static long (*bpf_xdp_adjust_meta)(struct xdp_md *ctx, int delta) = (void *)54;
static long (*bpf_xdp_adjust_tail)(struct xdp_md *ctx, int delta) = (void *)65;
static long (*bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static long (*bpf_xdp_load_bytes)(struct xdp_md *ctx, uint32_t at, void *to,
                                  uint32_t count) = (void *)189;
static long (*bpf_xdp_store_bytes)(struct xdp_md *ctx, uint32_t at, const void *from,
                                   uint32_t count) = (void *)190;

/* A map, as libbpf reads it from the object's types. */
#define INA_MAP(name, kind, key_bytes, value_bytes, entries, options)                              \
    struct {                                                                                       \
        int (*type)[kind];                                                                         \
        int (*key_size)[key_bytes];                                                                \
        int (*value_size)[value_bytes];                                                            \
        int (*max_entries)[entries];                                                               \
        int (*map_flags)[options];                                                                 \
    } name SEC(".maps")
/* The same of a struct: a value with a lock is told by its type. */
#define INA_MAP_OF(name, kind, value_type, entries)                                                \
    struct {                                                                                       \
        int (*type)[kind];                                                                         \
        uint32_t *key;                                                                             \
        value_type *value;                                                                         \
        int (*max_entries)[entries];                                                               \
    } name SEC(".maps")

#endif /* INA_KERNEL_H */
