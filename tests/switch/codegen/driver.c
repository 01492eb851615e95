/* Feeds packets from stdin (port, length: little-endian 32 bits; bytes) to a generated pipeline.
 * Each packet lies in memory of its own size, so that a sanitizer sees every read past its end.
 * Tables are filled by trying random entries; what does not fit is refused. */
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

int main(void) {
    const ina_pipeline *const pipeline = ina_pipeline_get();
    void *const state = pipeline->create();
    if (!state) return 2;
    fill_tables(pipeline, state);
    const ina_replica replicas[2] = {{1, 1}, {2, 2}};
    for (uint32_t group = 1; group < 20; group++)
        pipeline->multicast_set(state, group, replicas, 2);

    const size_t arena_bytes = 1 << 20, capacity = 64;
    uint32_t depth[INA_MAX_PORTS] = {0};
    ina_output out = {malloc(arena_bytes),
                      arena_bytes,
                      0,
                      calloc(capacity, sizeof(ina_packet_out)),
                      capacity,
                      0,
                      depth,
                      1};
    uint32_t head[2];
    size_t in_count = 0, out_count = 0;
    while (fread(head, sizeof head, 1, stdin) == 1) {
        uint8_t *const data = malloc(head[1] ? head[1] : 1);
        if (head[1] && fread(data, head[1], 1, stdin) != 1) return 3;
        const ina_packet_in in = {data, head[1], head[0], 1000 * in_count};
        out.count = out.arena_used = 0;
        if (pipeline->process(state, &in, 1, &out) != 1) return 4;
        in_count++;
        out_count += out.count;
        for (size_t i = 0; i < out.count; i++) /* a tail lies in what was written */
            if (out.packets[i].tail &&
                (out.packets[i].tail < out.arena ||
                 out.packets[i].tail + out.packets[i].tail_length > out.arena + out.arena_used))
                return 5;
        free(data);
    }
    printf("%zu packets in, %zu out\n", in_count, out_count);
    free(out.arena);
    free(out.packets);
    pipeline->destroy(state);
    return 0;
}
