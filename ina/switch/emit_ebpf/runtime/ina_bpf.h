/* What generated XDP programs need of the kernel: helpers by their numbers (UAPI linux/bpf.h),
 * maps, and room for one packet on each processor. No header of the kernel or of libbpf is needed.
 */
#ifndef INA_BPF_H
#define INA_BPF_H

#include "ina_hash.h"

#define SEC(name) __attribute__((section(name), used))

struct xdp_md {
    uint32_t data, data_end, data_meta, ingress_ifindex, rx_queue_index, egress_ifindex;
};

enum { XDP_ABORTED, XDP_DROP, XDP_PASS, XDP_TX, XDP_REDIRECT };
enum { MAP_HASH = 1, MAP_ARRAY = 2, MAP_PERCPU_ARRAY = 6, MAP_LPM_TRIE = 11 };
enum { MAP_NO_PREALLOC = 1 };

struct bpf_spin_lock {
    uint32_t value;
};

static void *(*bpf_map_lookup_elem)(const void *map, const void *key) = (void *)1;
static uint64_t (*bpf_xdp_get_buff_len)(struct xdp_md *ctx) = (void *)188;
static uint64_t (*bpf_ktime_get_ns)(void) = (void *)5;
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

enum { INA_INSTANCE_NORMAL = 0, INA_INSTANCE_REPLICATION = 5 };
#define INA_DROP_PORT 511u

/* -- tables and counters -- */

typedef struct {
    uint32_t action, number; /* in the program's list; of the entry, for its counter */
    uint64_t words[];        /* parameters */
} ina_entry;

typedef struct {
    uint64_t packets, bytes;
} ina_counter;

/* The entry, or the default one, of which there are two: `defaults` says which, then has both. */
INA_INLINE ina_entry *ina_default(volatile uint64_t *defaults, uint32_t words) {
    return (ina_entry *)(defaults + 1 + (defaults[0] & 1) * words);
}

INA_INLINE ina_entry *ina_look_up(const void *map, const void *key, volatile uint64_t *defaults,
                                  uint32_t words, bool *hit) {
    ina_entry *const found = bpf_map_lookup_elem(map, key);
    *hit = found != NULL;
    return found ? found : ina_default(defaults, words);
}

/* Counters are a processor's own, and added up when they are read. */
INA_INLINE void ina_count(const void *map, uint32_t index, uint32_t length) {
    ina_counter *const counter = bpf_map_lookup_elem(map, &index);
    if (!counter) return;
    counter->packets++;
    counter->bytes += length;
}

/* -- bytes -- */

#define INA_ROOM 4096u           /* for a frame: longer ones are dropped */
#define INA_NOWHERE INA_ROOM     /* the place of a header that is not there: zeros */
#define INA_HEADERS_ROOM 2048u   /* that are written */
#define INA_LONGEST_HEADER 2048u /* what may be touched behind a place */

#undef memcpy
#undef memset
#define memcpy(to, from, size) ina_copy((uint8_t *)(to), (const uint8_t *)(from), size)
#define memset(to, value, size) ina_clear((uint8_t *)(to), size)

INA_INLINE void ina_copy(uint8_t *to, const uint8_t *from, size_t size) {
    size_t i = 0;
    for (; i + 8 <= size; i += 8) *(uint64_t *)(to + i) = *(const uint64_t *)(from + i);
    for (; i < size; i++) to[i] = from[i];
}

INA_INLINE void ina_clear(uint8_t *to, size_t size) {
    size_t i = 0;
    for (; i + 8 <= size; i += 8) *(volatile uint64_t *)(to + i) = 0;
    for (; i < size; i++) *(volatile uint8_t *)(to + i) = 0;
}

/* Headers of `now` bytes in place of those of `before`, of a frame of `size` bytes that is at `in`,
 * too. The frame's start moves as far as there is surely room before it; to grow more, it moves its
 * end, and all of it is written. */
#define INA_MOST_AHEAD 64u

INA_INLINE bool ina_put_headers(struct xdp_md *ctx, const uint8_t *headers, const uint8_t *in,
                                uint32_t now, uint32_t before, uint32_t size) {
    if (now > INA_HEADERS_ROOM || before > size) return false;
    if (now > before + INA_MOST_AHEAD) {
        const uint32_t rest = size - before;
        if (bpf_xdp_adjust_tail(ctx, (int)now - (int)before)) return false;
        if (rest > 0 && rest <= INA_ROOM) {
            const uint8_t *const payload = in + (before & (INA_ROOM - 1));
            if (bpf_xdp_store_bytes(ctx, now, payload, rest)) return false;
        }
    } else if (now != before && bpf_xdp_adjust_head(ctx, (int)before - (int)now)) {
        return false;
    }
    return now == 0 || bpf_xdp_store_bytes(ctx, 0, headers, now) == 0;
}

#endif /* INA_BPF_H */
