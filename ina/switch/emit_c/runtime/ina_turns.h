/* Clone sessions and digests: what programs with further turns of a packet have beside the rest. */
#ifndef INA_TURNS_H
#define INA_TURNS_H

#include "ina_base.h"
#include "pipeline_abi.h"

#define INA_SESSIONS 32768u /* as simple_switch has them: 15 bits */
#define INA_CLONE_ASKED 32768u
#define INA_MOST_TURNS 128u /* of one packet, clones included: what would come after is dropped */
#define INA_ROOM_TURNS 8u   /* turns that there is room for in the output before a packet begins */
#define INA_MOST_DIGESTS 4096u
#define INA_INSTANCE_INGRESS_CLONE 1
#define INA_INSTANCE_EGRESS_CLONE 2
#define INA_INSTANCE_RECIRCULATED 4
#define INA_INSTANCE_RESUBMITTED 6

typedef struct {
    ina_replica *replicas;
    uint32_t count;      /* 0: there is no such session */
    uint32_t most_bytes; /* of a clone */
} ina_clone;

typedef struct {
    ina_clone *sessions; /* INA_SESSIONS of them; NULL: the program makes no clones */
    uint32_t most_replicas;
} ina_clones;

/* A ring of records, each the digest's number and its values in words; all of the same room. */
typedef struct {
    uint64_t *records;
    uint32_t record_words;
    uint32_t first, count;
    uint64_t lost; /* there was no room for them */
} ina_digests;

static inline int ina_clone_set(ina_clones *clones, uint32_t session, const ina_replica *replicas,
                                uint32_t count, uint32_t most_bytes) {
    if (session >= INA_SESSIONS) return INA_INVALID;
    for (uint32_t i = 0; i < count; i++)
        if (replicas[i].egress_port >= INA_MAX_PORTS || replicas[i].rid > UINT16_MAX)
            return INA_INVALID;
    if (!clones->sessions) return INA_OK;
    ina_replica *copy = NULL;
    if (count) {
        copy = malloc(count * sizeof *copy);
        if (!copy) return INA_FULL;
        memcpy(copy, replicas, count * sizeof *copy);
    }
    free(clones->sessions[session].replicas);
    clones->sessions[session] = (ina_clone){copy, count, most_bytes};
    clones->most_replicas = 0;
    for (uint32_t i = 0; i < INA_SESSIONS; i++)
        if (clones->sessions[i].count > clones->most_replicas)
            clones->most_replicas = clones->sessions[i].count;
    return INA_OK;
}

static inline void ina_clones_free(ina_clones *clones) {
    for (uint32_t i = 0; clones->sessions && i < INA_SESSIONS; i++)
        free(clones->sessions[i].replicas);
    free(clones->sessions);
}

/* Where the words of a new record go; NULL: no room, and it is counted as lost. */
static inline uint64_t *ina_digest_put(ina_digests *digests) {
    if (digests->count == INA_MOST_DIGESTS) {
        digests->lost++;
        return NULL;
    }
    const uint32_t at = (digests->first + digests->count++) % INA_MOST_DIGESTS;
    return digests->records + (size_t)at * digests->record_words;
}

/* The words taken, the digest's number first; INA_NOT_FOUND: there is none. */
static inline int ina_digest_take(ina_digests *digests, uint64_t *words, uint32_t room) {
    if (digests->count == 0) return INA_NOT_FOUND;
    if (room < digests->record_words) return INA_INVALID;
    memcpy(words, digests->records + (size_t)digests->first * digests->record_words,
           digests->record_words * sizeof *words);
    digests->first = (digests->first + 1) % INA_MOST_DIGESTS;
    digests->count--;
    return (int)digests->record_words;
}

#endif /* INA_TURNS_H */
