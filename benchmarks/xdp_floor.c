/* A switch that sums one job, written by hand for it: what any program for the kernel has to do.
 *
 * No tables, no counters, no checks of who sends: `ina bench pipeline --device xdp` holds the
 * generated program of mode pool against it. VALUES, WORKERS and SLOTS are macros.
 */
#include "ina_kernel.h"

enum { ETHERNET = 14, IPV4 = 20, UDP = 8, INA = 32, HEADERS = ETHERNET + IPV4 + UDP + INA };
enum { FRAME = HEADERS + 4 * VALUES, INA_PORT = 0x4560 };

struct ina_h { /* docs/protocol.md; in network order */
    uint8_t kind, flags;
    uint16_t job, epoch;
    uint8_t worker, level;
    uint16_t slot, unused;
    uint32_t seq, contributors;
    uint8_t exponent, next_exponent;
    uint16_t digest;
    uint32_t check, more;
} __attribute__((packed));

struct slot {
    struct bpf_spin_lock lock;
    uint32_t seq, bitmap, check;
    uint16_t digest;
    uint8_t next_exponent;
    uint32_t values[VALUES] __attribute__((aligned(64)));
};
INA_MAP_OF(slots, MAP_ARRAY, struct slot, SLOTS);

#define EACH _Pragma("clang loop unroll_count(16)") for (uint32_t i = 0; i < VALUES; i++)

SEC("xdp") int floor(struct xdp_md *ctx) {
    uint8_t *const data = (uint8_t *)(long)ctx->data;
    if (data + FRAME > (uint8_t *)(long)ctx->data_end) return XDP_PASS;
    uint16_t *const ethernet = (uint16_t *)data;
    uint16_t *const ip = (uint16_t *)(data + ETHERNET);
    uint16_t *const udp = (uint16_t *)(data + ETHERNET + IPV4);
    struct ina_h *const ina = (struct ina_h *)(data + ETHERNET + IPV4 + UDP);
    uint32_t *const wire = (uint32_t *)(data + HEADERS);
    if (ethernet[6] != __builtin_bswap16(0x0800) || data[ETHERNET] != 0x45 ||
        data[ETHERNET + 9] != 17 || udp[1] != __builtin_bswap16(INA_PORT))
        return XDP_PASS;
    if ((ina->kind & 0xf) != 1 || ina->worker >= WORKERS) return XDP_DROP;
    uint32_t sum = 0;
    for (int i = 0; i < 10; i++) sum += ip[i];
    sum = (sum & 0xffff) + (sum >> 16);
    if ((uint16_t)~((sum & 0xffff) + (sum >> 16))) return XDP_DROP;

    const uint32_t at = __builtin_bswap16(ina->slot), seq = ina->seq, bit = 1u << ina->worker;
    struct slot *const slot = bpf_map_lookup_elem(&slots, &at);
    if (!slot) return XDP_DROP;
    bpf_spin_lock(&slot->lock);
    if (slot->seq != seq || slot->bitmap == 0) {
        slot->seq = seq;
        slot->bitmap = bit;
        slot->check = __builtin_bswap32(ina->check);
        slot->digest = __builtin_bswap16(ina->digest);
        slot->next_exponent = ina->next_exponent;
        EACH slot->values[i] = __builtin_bswap32(wire[i]);
    } else if (!(slot->bitmap & bit)) {
        slot->bitmap |= bit;
        slot->check += __builtin_bswap32(ina->check);
        slot->digest += __builtin_bswap16(ina->digest);
        if (ina->next_exponent > slot->next_exponent) slot->next_exponent = ina->next_exponent;
        EACH slot->values[i] += __builtin_bswap32(wire[i]);
    }
    const bool complete = slot->bitmap == (uint32_t)((1ull << WORKERS) - 1);
    if (complete) {
        EACH wire[i] = __builtin_bswap32(slot->values[i]);
        ina->check = __builtin_bswap32(slot->check);
        ina->digest = __builtin_bswap16(slot->digest);
        ina->next_exponent = slot->next_exponent;
    }
    bpf_spin_unlock(&slot->lock);
    if (!complete) return XDP_DROP;
    ina->kind = (uint8_t)((ina->kind & 0xf0) | 2);
    ina->contributors = __builtin_bswap32((uint32_t)((1ull << WORKERS) - 1));
    return XDP_REDIRECT; /* whoever measures it makes the copies */
}

char licence[] SEC("license") = "Apache-2.0";
