/* What generated XDP programs have in common: ports, tables, counters, bytes of a frame. */
#ifndef INA_BPF_H
#define INA_BPF_H

#include "ina_hash.h"
#include "ina_kernel.h"

enum { INA_ANOTHER_WAY = -1 }; /* of what is tried first: nothing is done yet */

/* -- ports: empty until interfaces are attached, and then a frame leaves -- */

#define INA_PORTS 512
#define INA_MOST_COPIES 64 /* of a group */
#define INA_MOST_GROUPS 1024

struct ina_copies {
    int (*type)[MAP_DEVMAP];
    int (*key_size)[4];
    int (*value_size)[8]; /* index of the interface, program that a copy takes before it leaves */
    int (*max_entries)[INA_MOST_COPIES];
};

/* By group: its copies. */
struct {
    int (*type)[MAP_HASH_OF_MAPS];
    int (*max_entries)[INA_MOST_GROUPS];
    uint32_t *key;
    struct ina_copies *values[];
} ina_groups SEC(".maps");
/* A copy's rid, by which one of its group's at its port it is. The kernel does not say which, but
 * a processor sends the copies of one frame to a port one behind the other (kernel/bpf/devmap.c,
 * bq_enqueue), so they are counted: each frame that is copied has a number. */
struct ina_copy {
    uint16_t group, port;
    uint32_t number;
};
struct ina_seen {
    uint32_t frame, copies;
};
INA_MAP(ina_last_seen, MAP_PERCPU_ARRAY, 4, 8, INA_PORTS, 0);
INA_MAP(ina_frames, MAP_PERCPU_ARRAY, 4, 8, 1, 0);
INA_MAP(ina_rids, MAP_HASH, 8, 4, INA_MOST_GROUPS *INA_MOST_COPIES, MAP_NO_PREALLOC);
INA_MAP(ina_interfaces, MAP_DEVMAP, 4, 8, INA_PORTS, 0); /* by port */
INA_MAP(ina_ports, MAP_HASH, 4, 4, INA_PORTS, 0);        /* by index of interface */
INA_MAP(ina_to_controller, MAP_PROG_ARRAY, 4, 4, 1, 0);
struct {
    int (*type)[MAP_RINGBUF];
    int (*max_entries)[1 << 20];
} ina_controller SEC(".maps"); /* frames for it: what finds it full is lost */
/* Whether interfaces are attached, the controller's port, whether in generic mode, whether some
 * lose frames on purpose. */
volatile uint32_t ina_live[4] SEC(".data.live");
INA_MAP(ina_losses, MAP_ARRAY, 4, 4, INA_PORTS, 0); /* by port: how many of 2^32 frames, each way */

INA_INLINE bool ina_loses(uint32_t port) {
    if (!ina_live[3]) return false;
    const uint32_t *const of_all = bpf_map_lookup_elem(&ina_losses, &port);
    return of_all && bpf_get_prandom_u32() < *of_all;
}

/* In generic mode a frame's copies come without what stands in front of it; but its processor makes
 * all of them before it takes another frame. */
#define INA_MOST_CARRIED 32
INA_MAP(ina_carried_last, MAP_PERCPU_ARRAY, 4, INA_MOST_CARRIED, 1, 0);

/* Notes for the copies what stands in front of a frame: `size` bytes, in words. */
INA_INLINE void ina_note_carried(struct xdp_md *ctx, uint32_t size) {
    const uint32_t zero = 0;
    const uint32_t *const from = (const uint32_t *)(long)ctx->data_meta;
    uint32_t *const to = bpf_map_lookup_elem(&ina_carried_last, &zero);
    if (!to || (const uint8_t *)from + size > (const uint8_t *)(long)ctx->data) return;
    for (uint32_t i = 0; i < size / 4; i++) to[i] = from[i];
}

/* What stood in front of a copy's frame. */
INA_INLINE const void *ina_carried(struct xdp_md *ctx, uint32_t size) {
    const uint32_t zero = 0;
    const uint8_t *const meta = (const uint8_t *)(long)ctx->data_meta;
    if (meta + size <= (const uint8_t *)(long)ctx->data) return meta;
    return ina_live[2] ? bpf_map_lookup_elem(&ina_carried_last, &zero) : NULL;
}

/* When the switch was switched on: its clock counts from then. */
volatile uint64_t ina_began_ns[1] SEC(".data.began");

INA_INLINE uint64_t ina_now_us(void) { return (bpf_ktime_get_ns() - ina_began_ns[0]) / 1000; }

/* Of a frame that is to be copied: different from the one before on this processor. */
INA_INLINE uint32_t ina_next_frame(void) {
    const uint32_t zero = 0;
    uint64_t *const frames = bpf_map_lookup_elem(&ina_frames, &zero);
    return frames ? (uint32_t)++*frames : 0;
}

/* Which copy of its frame at its port this is, from 0. */
INA_INLINE uint32_t ina_copies_before(uint32_t port, uint32_t frame) {
    struct ina_seen *const last = bpf_map_lookup_elem(&ina_last_seen, &port);
    if (!last) return 0;
    if (last->frame != frame) {
        last->frame = frame;
        last->copies = 0;
    }
    return last->copies++;
}

/* Sends a frame on its way: a copy to each of a group, or one to a port. */
INA_INLINE int ina_send(struct xdp_md *ctx, uint32_t group, uint32_t port) {
    if (!ina_live[0]) return XDP_REDIRECT; /* whoever asked makes the copies */
    if (group) {
        const void *const copies = bpf_map_lookup_elem(&ina_groups, &group);
        if (!copies) return XDP_DROP;
        return (int)bpf_redirect_map(copies, 0, REDIRECT_BROADCAST);
    }
    if (port == ina_live[1]) {
        bpf_tail_call(ctx, &ina_to_controller, 0);
        return XDP_ABORTED;
    }
    return (int)bpf_redirect_map(&ina_interfaces, port, XDP_DROP);
}

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

/* Where a header that is not there is read on the main path: 0. */
static const uint8_t ina_zeros[INA_LONGEST_HEADER];

#undef memcpy
#undef memset
#define memcpy(to, from, size) ina_copy((uint8_t *)(to), (const uint8_t *)(from), size)
#define memset(to, value, size) ina_clear((uint8_t *)(to), size)
#undef memmove
#define memmove(to, from, size) ina_move((uint8_t *)(to), (const uint8_t *)(from), size)

INA_INLINE void ina_copy(uint8_t *to, const uint8_t *from, size_t size) {
    size_t i = 0;
    for (; i + 8 <= size; i += 8) *(uint64_t *)(to + i) = *(const uint64_t *)(from + i);
    for (; i < size; i++) to[i] = from[i];
}

INA_INLINE void ina_move(uint8_t *to, const uint8_t *from, size_t size) {
    size_t i = size;
    if ((uintptr_t)to < (uintptr_t)from) {
        ina_copy(to, from, size);
        return;
    }
    for (; i >= 8; i -= 8) *(uint64_t *)(to + i - 8) = *(const uint64_t *)(from + i - 8);
    for (; i > 0; i--) to[i - 1] = from[i - 1];
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

INA_INLINE bool ina_move_headers(struct xdp_md *ctx, const uint8_t *headers, uint32_t now,
                                 uint32_t before) {
    if (now != before && bpf_xdp_adjust_head(ctx, (int)before - (int)now)) return false;
    return now == 0 || bpf_xdp_store_bytes(ctx, 0, headers, now) == 0;
}

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
        return bpf_xdp_store_bytes(ctx, 0, headers, now) == 0;
    }
    return ina_move_headers(ctx, headers, now, before);
}

#endif /* INA_BPF_H */
