/* A pipeline by hand, to test ports without a P4 program: answers, forwards or fans out. */
#include <stdlib.h>
#include <string.h>

#include "switch/pipeline_abi.h"

typedef struct {
    int answer;         /* swap source and destination: MAC, IPv4, UDP */
    uint32_t to_port;   /* egress port; INA_MAX_PORTS: the ingress port; one more: 1 <-> 2 */
    uint32_t copies;    /* of each packet */
    uint16_t udp_port;  /* if not 0: UDP destination of the first copy, counting up */
    int tos;            /* if not -1: written to the copies */
    uint32_t max_depth; /* largest depth_pkts seen on entry */
    uint32_t tailed;    /* packets that came in two parts */
} reflector;

static void swap(uint8_t *a, uint8_t *b, size_t bytes) {
    uint8_t kept[6];
    memcpy(kept, a, bytes);
    memcpy(a, b, bytes);
    memcpy(b, kept, bytes);
}

static size_t process(void *state, const ina_packet_in *in, size_t count, ina_output *out) {
    reflector *r = state;
    for (size_t i = 0; i < count; ++i) {
        const uint32_t length = in[i].length + in[i].tail_length;
        if (out->count + r->copies > out->capacity ||
            out->arena_used + (size_t)r->copies * length > out->arena_bytes)
            return i;
        const uint8_t *first = NULL;
        r->tailed += in[i].tail != NULL;
        for (uint32_t copy = 0; copy < r->copies; ++copy) {
            uint8_t *frame = out->arena + out->arena_used;
            uint32_t port = r->to_port;
            if (port == INA_MAX_PORTS) port = in[i].port;
            if (port == INA_MAX_PORTS + 1) port = 3 - in[i].port;
            memcpy(frame, in[i].data, in[i].length);
            if (in[i].tail) memcpy(frame + in[i].length, in[i].tail, in[i].tail_length);
            if (length >= 42) {
                if (r->answer) {
                    swap(frame, frame + 6, 6);
                    swap(frame + 26, frame + 30, 4);
                    swap(frame + 34, frame + 36, 2);
                }
                if (r->udp_port) {
                    frame[36] = (uint8_t)((r->udp_port + copy) >> 8);
                    frame[37] = (uint8_t)(r->udp_port + copy);
                }
                if (r->tos >= 0) frame[15] = (uint8_t)r->tos;
            }
            /* Of a copy that goes on in the first one: behind an INA header, as ina's program has
             * it, and elsewhere. */
            const uint32_t head = length > 200 ? 74 : 50;
            if (copy == 0) first = frame;
            const uint32_t rest = length > head ? length - head : 0;
            const uint32_t trailer = out->share_tails == INA_TRAILERS && rest > 8 ? 4 : 0;
            if (out->share_tails && copy > 0 && rest > 0) {
                const uint32_t shared = rest - trailer;
                uint8_t last[4];
                memcpy(last, frame + length - trailer, trailer);
                memset(frame + head, 0xdd, rest); /* nobody may read it */
                memcpy(frame + head, last, trailer);
                out->packets[out->count] =
                    (ina_packet_out){frame, head + trailer, port, first + head, shared, trailer};
            } else {
                out->packets[out->count] = (ina_packet_out){frame, length, port, NULL, 0, 0};
            }
            out->count++;
            out->arena_used += length;
            if (out->depth_pkts[port] > r->max_depth) r->max_depth = out->depth_pkts[port];
            out->depth_pkts[port]++;
        }
    }
    return count;
}

void *reflector_new(int answer, uint32_t to_port, uint32_t copies, uint16_t udp_port, int tos) {
    reflector *r = calloc(1, sizeof *r);
    r->answer = answer;
    r->to_port = to_port;
    r->copies = copies;
    r->udp_port = udp_port;
    r->tos = tos;
    return r;
}

uint32_t reflector_tailed(void *state) { return ((reflector *)state)->tailed; }
uint32_t reflector_max_depth(void *state) { return ((reflector *)state)->max_depth; }
void reflector_free(void *state) { free(state); }

static const ina_pipeline pipeline = {.abi = INA_PIPELINE_ABI, .process = process};
const ina_pipeline *ina_pipeline_get(void) { return &pipeline; }
