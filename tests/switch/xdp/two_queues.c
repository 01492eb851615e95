/* Two workers whose values say which round they are of, and hosts that look at every result.
 *
 * Worker w of round r sends 2 r + w in each value, so that each sum is 4 r + 1. Each has a
 * processor and an interface of its own; who is ahead sends its last frame again. VALUES and SLOTS
 * are macros.
 */
#include "ina_kernel.h"

enum { HEADERS = 14 + 20 + 8 + 32, FRAME = HEADERS + 4 * VALUES, WORKERS = 2 };
enum { SLOT = HEADERS - 24, SEQ = HEADERS - 20 };

struct head {
    uint64_t words[(HEADERS + 7) / 8];
};
INA_MAP_OF(heads, MAP_ARRAY, struct head, WORKERS);
INA_MAP(rounds, MAP_ARRAY, 4, 4, WORKERS, 0);
INA_MAP(ways, MAP_DEVMAP, 4, 4, WORKERS, 0);
INA_MAP(seen, MAP_PERCPU_ARRAY, 4, 8, 2, 0); /* results, and those of them that are wrong */

INA_INLINE int send(struct xdp_md *ctx, const uint32_t worker) {
    const uint32_t another = 1 - worker;
    volatile uint32_t *const own = bpf_map_lookup_elem(&rounds, &worker);
    const volatile uint32_t *const its = bpf_map_lookup_elem(&rounds, &another);
    const struct head *const head = bpf_map_lookup_elem(&heads, &worker);
    uint8_t *const data = (uint8_t *)(long)ctx->data;
    if (!own || !its || !head || data + FRAME > (uint8_t *)(long)ctx->data_end) return XDP_ABORTED;
    if (*own <= *its) ++*own;
    const uint32_t round = *own;
    for (int i = 0; i < HEADERS / 8; i++) ((uint64_t *)data)[i] = head->words[i];
    *(uint16_t *)(data + HEADERS - 2) = (uint16_t)head->words[HEADERS / 8];
    *(uint16_t *)(data + SLOT) = __builtin_bswap16((uint16_t)(round % SLOTS));
    *(uint32_t *)(data + SEQ) = __builtin_bswap32(round);
    const uint32_t value = __builtin_bswap32(2 * round + worker);
    uint32_t *const values = (uint32_t *)(data + HEADERS);
    for (int i = 0; i < VALUES; i++) values[i] = value;
    return (int)bpf_redirect_map(&ways, worker, XDP_ABORTED);
}

SEC("xdp") int send_0(struct xdp_md *ctx) { return send(ctx, 0); }
SEC("xdp") int send_1(struct xdp_md *ctx) { return send(ctx, 1); }

SEC("xdp") int look(struct xdp_md *ctx) {
    const uint8_t *const data = (const uint8_t *)(long)ctx->data;
    if (data + FRAME > (const uint8_t *)(long)ctx->data_end) return XDP_DROP;
    const uint32_t results = 0, wrong = 1;
    const uint32_t round = __builtin_bswap32(*(const uint32_t *)(data + SEQ));
    const uint32_t wanted = __builtin_bswap32(4 * round + 1);
    const uint32_t *const values = (const uint32_t *)(data + HEADERS);
    uint32_t differs = 0;
    for (int i = 0; i < VALUES; i++) differs |= values[i] ^ wanted;
    uint64_t *const all = bpf_map_lookup_elem(&seen, &results);
    uint64_t *const bad = bpf_map_lookup_elem(&seen, &wrong);
    if (!all || !bad) return XDP_ABORTED;
    ++*all;
    *bad += differs != 0;
    return XDP_DROP;
}

char licence[] SEC("license") = "Apache-2.0";
