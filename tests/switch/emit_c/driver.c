/* Feeds packets from stdin (port, length: little-endian 32 bits; bytes) to a generated pipeline,
 * and to a second one in two parts, which has to do the same. Each part lies in memory of its own
 * size, so that a sanitizer sees every read past its end. Tables are filled by trying random
 * entries; what does not fit is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pipeline_abi.h"

const ina_pipeline *ina_pipeline_get(void);

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void fill_tables(const ina_pipeline *pipeline, void *state) {
    uint64_t key[16], mask[16], params[32];
    for (int i = 0; i < 4000; i++) {
        for (int w = 0; w < 16; w++) {
            mask[w] = next_random() & 1 ? (uint64_t)0xff : ~(uint64_t)0 >> (next_random() % 64);
            key[w] = next_random() % 8 & mask[w];
        }
        for (int w = 0; w < 32; w++) params[w] = next_random() % 8;
        const ina_entry entry = {key, mask, (int32_t)(next_random() % 40),
                                 (uint32_t)(next_random() % 24), params};
        const uint32_t table = (uint32_t)(next_random() % 16);
        const int64_t handle = pipeline->table_insert(state, table, &entry);
        if (handle >= 0 && next_random() % 4 == 0) pipeline->table_delete(state, table, handle);
    }
}

typedef struct {
    void *state;
    ina_output out;
    uint32_t depth[INA_MAX_PORTS];
} side;

static int open_side(const ina_pipeline *pipeline, side *side) {
    const size_t arena_bytes = 4 << 20, capacity = 64; /* for the longest, of all turns */
    side->state = pipeline->create();
    if (!side->state) return 0;
    random_state = 88172645463325252u;
    fill_tables(pipeline, side->state);
    const ina_replica replicas[2] = {{1, 1}, {2, 2}};
    for (uint32_t group = 1; group < 20; group++)
        pipeline->multicast_set(side->state, group, replicas, 2);
    ina_packet_out *const packets = calloc(capacity, sizeof(ina_packet_out));
    side->out =
        (ina_output){malloc(arena_bytes), arena_bytes, 0, packets, capacity, 0, side->depth, 1};
    return 1;
}

static void close_side(const ina_pipeline *pipeline, side *side) {
    free(side->out.arena);
    free(side->out.packets);
    pipeline->destroy(side->state);
}

static int run(const ina_pipeline *pipeline, side *side, const ina_packet_in *in) {
    ina_output *const out = &side->out;
    out->count = out->arena_used = 0;
    if (pipeline->process(side->state, in, 1, out) != 1) return 0;
    for (size_t i = 0; i < out->count; i++) { /* a tail lies in what was written */
        const uint8_t *const tail = out->packets[i].tail;
        if (tail && (tail < out->arena ||
                     tail + out->packets[i].tail_length > out->arena + out->arena_used))
            return 0;
    }
    return 1;
}

/* Whether both sent the same packets, in the same parts. */
static int are_alike(const ina_output *a, const ina_output *b) {
    if (a->count != b->count || a->arena_used != b->arena_used) return 0;
    if (memcmp(a->arena, b->arena, a->arena_used)) return 0;
    for (size_t i = 0; i < a->count; i++) {
        const ina_packet_out x = a->packets[i], y = b->packets[i];
        if (x.length != y.length || x.port != y.port || x.tail_length != y.tail_length ||
            x.trailer_length != y.trailer_length)
            return 0;
    }
    return 1;
}

/* In memory of its own, not NULL. */
static uint8_t *copy_of(const uint8_t *data, size_t bytes) {
    uint8_t *const copy = malloc(bytes ? bytes : 1);
    memcpy(copy, data, bytes);
    return copy;
}

int main(void) {
    const ina_pipeline *const pipeline = ina_pipeline_get();
    static side whole, apart;
    if (!open_side(pipeline, &whole) || !open_side(pipeline, &apart)) return 2;
    uint32_t head[2];
    size_t in_count = 0, out_count = 0;
    while (fread(head, sizeof head, 1, stdin) == 1) {
        uint8_t *const data = malloc(head[1] ? head[1] : 1);
        if (head[1] && fread(data, head[1], 1, stdin) != 1) return 3;
        const ina_packet_in in = {data, head[1], head[0], 1000 * in_count, NULL, 0};
        if (!run(pipeline, &whole, &in)) return 4;
        /* Often where the values of INA's packets begin. */
        const uint32_t values_at = 74;
        const uint32_t cut = head[1] > values_at && next_random() % 2
                                 ? values_at
                                 : (uint32_t)(next_random() % (head[1] + 1));
        uint8_t *const first = copy_of(data, cut), *const rest = copy_of(data + cut, head[1] - cut);
        const ina_packet_in parts = {first, cut, head[0], 1000 * in_count, rest, head[1] - cut};
        if (!run(pipeline, &apart, &parts)) return 5;
        if (!are_alike(&whole.out, &apart.out)) return 6;
        in_count++;
        out_count += whole.out.count;
        free(data);
        free(first);
        free(rest);
    }
    uint8_t *const longest = calloc(1, INA_MOST_GATHERED_BYTES + 1);
    const ina_packet_in too_long = {longest, 1, 1, 0, longest + 1, INA_MOST_GATHERED_BYTES};
    if (!run(pipeline, &apart, &too_long) || apart.out.count != 0) return 7; /* dropped */
    free(longest);
    printf("%zu packets in, %zu out\n", in_count, out_count);
    close_side(pipeline, &whole);
    close_side(pipeline, &apart);
    return 0;
}
