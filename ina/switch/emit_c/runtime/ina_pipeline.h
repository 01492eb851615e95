/* What every generated pipeline needs around its own code: counters, multicast groups, room checks.
 */
#ifndef INA_PIPELINE_H
#define INA_PIPELINE_H

#include <pthread.h>

#include "ina_base.h"
#include "ina_hash.h"
#include "ina_table.h"
#include "ina_turns.h"
#include "pipeline_abi.h"

#define INA_DROP_PORT 511u
#define INA_GROUPS 65536u
#define INA_INSTANCE_NORMAL 0
#define INA_INSTANCE_REPLICATION 5

typedef struct {
    uint64_t packets, bytes;
} ina_counter;

typedef struct {
    ina_replica *replicas;
    uint32_t count;
} ina_group;

/* Room for the copies of one packet, each in its own place in the arena: packets shorter than this
 * fit. It stays true until a packet has left, so that one that is absorbed pays a comparison. */
INA_INLINE size_t ina_room(const ina_output *out, size_t copies, size_t header_bytes) {
    const size_t each = (out->arena_bytes - out->arena_used) / copies;
    const bool fits = out->capacity - out->count >= copies && each >= header_bytes;
    return fits ? each - header_bytes + 1 : 0;
}

/* What the copies of one packet end with alike: written by the first of them. */
typedef struct {
    const uint8_t *data; /* NULL: none yet */
    uint32_t length;
    bool wanted;
    bool used;                /* by the copy that was written last */
    uint32_t trailer_length;  // of the last copy
} ina_tail;

INA_INLINE size_t ina_length(const ina_packet_in *in) {
    return (size_t)in->length + in->tail_length;
}

/* The frame in one part, in `memory` of INA_MOST_GATHERED_BYTES if it came in two; NULL: too long.
 */
static inline const ina_packet_in *ina_gather(const ina_packet_in *in, ina_packet_in *gathered,
                                              uint8_t *memory) {
    if (!in->tail) return in;
    const size_t length = ina_length(in);
    if (length > INA_MOST_GATHERED_BYTES) return NULL;
    memcpy(memory, in->data, in->length);
    memcpy(memory + in->length, in->tail, in->tail_length);
    *gathered = (ina_packet_in){memory, (uint32_t)length, in->port, in->now_ns, NULL, 0};
    return gathered;
}

/* Packets ahead to fetch into the cache. */
#define INA_PREFETCH 3

/* first and last: what is read of every packet, bytes from its beginning; often one cache line. */
INA_INLINE void ina_prefetch(const uint8_t *data, size_t first, size_t last) {
    __builtin_prefetch(data + first);
    __builtin_prefetch(data + last);
}

static inline int ina_group_set(ina_group *groups, uint32_t *most, uint32_t group,
                                const ina_replica *replicas, uint32_t count) {
    if (group == 0 || group >= INA_GROUPS) return INA_INVALID;
    for (uint32_t i = 0; i < count; i++)
        if (replicas[i].egress_port >= INA_MAX_PORTS || replicas[i].rid > UINT16_MAX)
            return INA_INVALID;
    ina_replica *copy = NULL;
    if (count) {
        copy = malloc(count * sizeof *copy);
        if (!copy) return INA_FULL;
        memcpy(copy, replicas, count * sizeof *copy);
    }
    free(groups[group].replicas);
    groups[group] = (ina_group){copy, count};
    *most = 1;
    for (uint32_t i = 0; i < INA_GROUPS; i++)
        if (groups[i].count > *most) *most = groups[i].count;
    return INA_OK;
}

/* Memory for a state, 64-byte aligned and zero. Pages that are never touched cost nothing. */
static inline void *ina_zeroed(size_t bytes, void **raw) {
    *raw = bytes < SIZE_MAX - 64 ? calloc(bytes + 64, 1) : NULL;
    if (!*raw) return NULL;
    return (void *)(((uintptr_t)*raw + 63) & ~(uintptr_t)63);
}

#endif /* INA_PIPELINE_H */
