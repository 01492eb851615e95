/* Contributions to one job, one after another, made in the kernel: to a program that is measured,
 * or out to the switch's ports. VALUES, WORKERS and SLOTS are macros.
 */
#include "ina_kernel.h"

enum { ETHERNET = 14, IPV4 = 20, UDP = 8, INA = 32, HEADERS = ETHERNET + IPV4 + UDP + INA };
enum { FRAME = HEADERS + 4 * VALUES, ROUND = SLOTS * WORKERS, SEQ = HEADERS - INA + 12 };

struct head {
    uint64_t words[(HEADERS + 7) / 8];
};
INA_MAP_OF(heads, MAP_ARRAY, struct head, ROUND); /* of one round's frames, the first of each slot
                                                     first */
INA_MAP(turns, MAP_ARRAY, 4, 8, 1, 0);            /* that were; one thread makes them */
INA_MAP(programs, MAP_PROG_ARRAY, 4, 4, 1, 0);
INA_MAP(ways, MAP_DEVMAP, 4, 4, WORKERS, 0); /* by worker: the interface that it sends by */

/* The next frame's headers; its values are whatever the last one left. */
INA_INLINE int next(struct xdp_md *ctx, uint32_t *worker) {
    const uint32_t zero = 0;
    uint64_t *const done = bpf_map_lookup_elem(&turns, &zero);
    if (!done) return XDP_ABORTED;
    const uint32_t at = (uint32_t)(*done % ROUND), round = (uint32_t)(*done / ROUND);
    ++*done;
    const struct head *const head = bpf_map_lookup_elem(&heads, &at);
    if (!head) return XDP_ABORTED;
    /* What a program put in front of the last one goes. */
    const long before = (long)ctx->data - (long)ctx->data_meta;
    if (before && bpf_xdp_adjust_meta(ctx, (int)before)) return XDP_ABORTED;
    uint8_t *const data = (uint8_t *)(long)ctx->data;
    if (data + FRAME > (uint8_t *)(long)ctx->data_end) return XDP_ABORTED;
    for (int i = 0; i < HEADERS / 8; i++) ((uint64_t *)data)[i] = head->words[i];
    *(uint16_t *)(data + HEADERS - 2) = (uint16_t)head->words[HEADERS / 8];
    uint32_t *const seq = (uint32_t *)(data + SEQ);
    *seq = __builtin_bswap32(__builtin_bswap32(*seq) + round * SLOTS);
    *worker = at % WORKERS;
    return XDP_PASS;
}

SEC("xdp") int call(struct xdp_md *ctx) {
    uint32_t worker;
    if (next(ctx, &worker) != XDP_PASS) return XDP_ABORTED;
    bpf_tail_call(ctx, &programs, 0);
    return XDP_ABORTED;
}

SEC("xdp") int send(struct xdp_md *ctx) {
    uint32_t worker;
    if (next(ctx, &worker) != XDP_PASS) return XDP_ABORTED;
    return (int)bpf_redirect_map(&ways, worker, XDP_ABORTED);
}

SEC("xdp") int nothing(struct xdp_md *ctx) { return XDP_DROP; }

char licence[] SEC("license") = "Apache-2.0";
