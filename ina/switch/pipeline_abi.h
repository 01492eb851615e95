/* The C ABI between a pipeline and whoever drives it in C++: the native port loop (native/switch),
 * the virtual network (native/sim), benchmarks. A target gives it
 * (ina.switch.pipeline.Pipeline.native); what the C target generates is it. Plain C11, included by
 * both sides; a change bumps INA_PIPELINE_ABI.
 *
 * Threading: every function that takes a state may be called from any thread; the implementation
 * holds one mutex a state, for a whole batch in process(). */
#ifndef INA_PIPELINE_ABI_H
#define INA_PIPELINE_ABI_H

#include <stddef.h>
#include <stdint.h>

#define INA_PIPELINE_ABI 6u
#define INA_TRAILERS 2u
#define INA_MOST_GATHERED_BYTES 65600u /* of a frame that comes in two parts */
#define INA_MAX_PORTS 512u /* egress ports 0..511, as bmv2's 9-bit port; 511 is v1model's drop */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    const uint8_t *data; /* the frame, from its first byte */
    uint32_t length;     /* bytes */
    uint32_t port;       /* ingress port */
    uint64_t now_ns;     /* arrival time; becomes ingress_global_timestamp (microseconds) */
    /* The frame goes on here, to INA_MOST_GATHERED_BYTES in all (a longer one is dropped); NULL and
     * 0: it does not. Somebody else may write here meanwhile: only a main path's late array, which
     * decides nothing, is read here, all else is copied first. */
    const uint8_t *tail;
    uint32_t tail_length;
} ina_packet_in;

typedef struct {
    uint8_t *data; /* points into ina_output.arena */
    uint32_t length;
    uint32_t port; /* egress port */
    /* The frame goes on here, in bytes of an earlier packet of the same call; NULL: it does not. */
    const uint8_t *tail;
    uint32_t tail_length;
    uint32_t trailer_length; /* of data: its last bytes, which are the frame's behind the tail */
} ina_packet_out;

/* Where process() leaves its packets. The caller owns it all and resets count and arena_used. */
typedef struct {
    uint8_t *arena;
    size_t arena_bytes;
    size_t arena_used;
    ina_packet_out *packets;
    size_t capacity;
    size_t count;
    /* Packets waiting at each egress port, INA_MAX_PORTS long: read as enq_qdepth/deq_qdepth,
     * incremented by process() for every packet it emits, reset by the caller when it has sent. */
    uint32_t *depth_pkts;
    /* Not 0: the caller reads tails, so copies of a packet may share what they have in common;
     * INA_TRAILERS: trailers, too. */
    uint32_t share_tails;
} ina_output;

/* One table entry, in words: every key field and every action parameter takes
 * ceil(width / 64) little-endian 64-bit words, in the order of the program's table and action. */
typedef struct {
    const uint64_t *key;
    /* ternary: the mask; lpm: derived from the prefix; exact: NULL or all ones;
     * range: key = low, mask = high */
    const uint64_t *mask;
    int32_t priority; /* larger wins (P4Runtime); LPM tables: prefix length */
    uint32_t action;  /* index into the program's action list */
    const uint64_t *params;
} ina_entry;

typedef struct {
    uint32_t egress_port;
    uint32_t rid;
} ina_replica;

/* Return codes of the control functions; process() cannot fail. */
enum {
    INA_OK = 0,
    INA_EXISTS = -1,
    INA_NOT_FOUND = -2,
    INA_FULL = -3,
    INA_INVALID = -4,
};

/* Exported by the shared object as: const ina_pipeline *ina_pipeline_get(void); */
typedef struct {
    uint32_t abi; /* INA_PIPELINE_ABI */
    const char *source_digest;
    void *(*create)(void); /* NULL: out of memory */
    void (*destroy)(void *state);

    /* Runs packets in order, stops early when the output might not hold the next packet's copies;
     * returns how many it consumed. A malformed packet is dropped or passed on as the program says;
     * nothing is read past its ends. */
    size_t (*process)(void *state, const ina_packet_in *in, size_t count, ina_output *out);

    /* Tables, counters, registers are numbered as in the generated program's lists. A handle stays
     * valid until its entry is removed. */
    /* Returns a handle or a code. */
    int64_t (*table_insert)(void *state, uint32_t table, const ina_entry *entry);
    int (*table_modify)(void *state, uint32_t table, int64_t handle, uint32_t action,
                        const uint64_t *params);
    int (*table_delete)(void *state, uint32_t table, int64_t handle);
    int (*table_set_default)(void *state, uint32_t table, uint32_t action, const uint64_t *params);
    int (*multicast_set)(void *state, uint32_t group, const ina_replica *replicas, uint32_t count);
    int (*counter_read)(void *state, uint32_t counter, uint64_t index, uint64_t *packets,
                        uint64_t *bytes);
    int (*counter_write)(void *state, uint32_t counter, uint64_t index, uint64_t packets,
                         uint64_t bytes);
    int (*direct_counter_read)(void *state, uint32_t table, int64_t handle, uint64_t *packets,
                               uint64_t *bytes); /* handle -1: the default entry's */
    int (*direct_counter_write)(void *state, uint32_t table, int64_t handle, uint64_t packets,
                                uint64_t bytes);
    /* The low 64 bits; what is written is cut to the register's width. For debugging, made-up
     * faults and tests only: no control-plane path may need it (protocol.md, promise 4). */
    int (*register_read)(void *state, uint32_t reg, uint64_t index, uint64_t *value);
    int (*register_write)(void *state, uint32_t reg, uint64_t index, uint64_t value);
    /* Where clones of a session (0..32767) go, and their most bytes (0: all); no replicas: nowhere.
     */
    int (*clone_set)(void *state, uint32_t session, const ina_replica *replicas, uint32_t count,
                     uint32_t most_bytes);
    /* The oldest digest that nobody took: its number in the program's list, then its values in
     * words; returns how many, or INA_NOT_FOUND. Digests that find 4,096 waiting are lost. */
    int (*digest_take)(void *state, uint64_t *words, uint32_t room);
} ina_pipeline;

#ifdef __cplusplus
}
#endif
#endif /* INA_PIPELINE_ABI_H */
