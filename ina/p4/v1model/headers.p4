// The header stack and the metadata of the v1model program.

#ifndef INA_V1MODEL_HEADERS_P4
#define INA_V1MODEL_HEADERS_P4

#ifdef ENCAP_ROCE
#include "roce_repeat.p4"
#endif
#include "../shared/headers.p4"

// Of a switch with a parent (admit_inner_job): parent_port, own_worker, own_bit, own_level. What
// Distribute has decided, and Address does: receiver, whom the only copy is for; worker and kind, what
// the header says. is_stream: of the last words of a round's packets the slot keeps the least.
#ifdef MODE_STREAM
#define STREAM_METADATA bit<1> is_stream;
#else
#define STREAM_METADATA
#endif
// What differs between what packets are in: UDP alone, SENDs to the switch (mode `roce`), or SENDs that are on
// their way round a ring of workers (mode `transparent`).
#ifdef ENCAP_RING
#include "ring_encap.p4"
#elif defined(ENCAP_ROCE)
#include "roce_encap.p4"
#else
#include "udp_encap.p4"
#endif
#define TARGET_METADATA                                                      \
    bit<9> parent_port; bit<8> own_worker; bit<32> own_bit; bit<4> own_level; \
    bit<8> receiver; bit<8> worker; bit<4> kind; STREAM_METADATA ENCAP_METADATA
#include "../shared/metadata.p4"

#define CPU_PORT 510 // packet-in and packet-out

#ifdef MODE_STREAM
#include "last_value.p4"

// A packet's last word, of one that has no other: the sender's next block that is not zero.
header next_block_h {
    bit<32> number;
}
#endif

struct headers_t {
    packet_out_h packet_out;
    packet_in_h  packet_in;
    ethernet_h   ethernet;
    ipv4_h       ipv4;
    udp_h        udp;
#ifdef ENCAP_ROCE
    bth_h        bth;
#endif
    ina_h        ina;
    values_h     values;
#ifdef MODE_STREAM
    next_block_h next_block; // in place of `values`
#endif
#ifdef ENCAP_ROCE
    icrc_h       icrc;
#endif
}

#endif // INA_V1MODEL_HEADERS_P4
