// The header stack and the metadata of the Tofino program.

#ifndef INA_TOFINO_HEADERS_P4
#define INA_TOFINO_HEADERS_P4

#include "ports.p4"

#define SLOT_INDEX_BITS 16

// Of mode `shared`, besides.
#ifdef MODE_SHARED
#define TARGET_SHARED_METADATA                                                \
    bit<16> lane_room;    /* lanes from this one on that may claim a slot; 0: it may not */ \
    bit<32> heard_before; /* a slot that was not heard of since is old */     \
    bit<8>  standing;     /* what the slot's owner is to this packet, see Claims */
#else
#define TARGET_SHARED_METADATA
#endif

#define TARGET_METADATA                                                       \
    bit<1>  formed;       /* whole, of this version, of a kind that is taken */ \
    bit<1>  known;        /* its job is in the table */                       \
    bit<2>  sender;       /* SENDER_*, what the member table says of it */    \
    bit<1>  harvest;      /* second pass: read the other half of the sums */  \
    bit<1>  blank;        /* came without values: 0s stand for them */        \
    bool    checksum_error;                                                   \
    bit<16> slot_room;    /* slots - slot; 0: beyond the job's range */       \
    bit<9>  parent_port;  /* behind which the parent is, where there is one */ \
    bit<8>  outcome;      /* OUTCOME_*, what Distribute made of it */         \
    TARGET_SHARED_METADATA

#include "../ina/p4/shared/headers.p4"
#include "../ina/p4/shared/metadata.p4"

// Whose packet it is, by the member table.
typedef bit<2> sender_t;
const sender_t SENDER_UNKNOWN = 0;
const sender_t SENDER_CHILD = 1;  // its contribution
const sender_t SENDER_PARENT = 2; // its result

// Why a packet crosses from ingress to egress.
typedef bit<8> pass_t;
const pass_t PASS_ORDINARY = 0;  // not INA: as it is, but not back to where it came from
const pass_t PASS_RESULT = 1;    // Address writes its receiver
const pass_t PASS_SUM = 4;       // a sum going up: Address writes the parent, and whose sum it is
const pass_t PASS_UP = 5;        // the same, and it says already whom it holds
const pass_t PASS_HARVEST_ALL = 2; // to the recirculation port, for a result to all, or a sum going up
const pass_t PASS_HARVEST_ONE = 3; // the same, for a replay to its sender, or a sum going up again

// In front of a packet between ingress and egress, and on its way to the second pass.
header bridge_h {
    pass_t  pass;
    bit<7>  padding;
    bit<9>  ingress_port; // by which it came first
    bit<16> job_index;
    bit<8>  own_worker;   // of a switch with a parent: admit_inner_job
    bit<4>  other_padding;
    bit<4>  own_level;
    bit<32> worker_bit;   // on the way to the second pass the sender's; else of a switch with a parent
}

struct headers_t {
    bridge_h     bridge;
    packet_in_h  packet_in;
    packet_out_h packet_out;
    ethernet_h   ethernet;
    ipv4_h       ipv4;
    udp_h        udp;

    ina_h        ina;
    values_h     values; // not parsed in egress
}

struct egress_metadata_t {
    bit<32> queue_cells; // when the packet came to the queue
    bit<32> threshold;   // in cells, too
    bit<32> excess;      // cells above the threshold
    bit<9>  way_back;    // ingress port ^ egress port: 0 is the way back
#if __TARGET_TOFINO__ != 1
    bit<24> way;         // of the receiver, as owners' paths begin
    bit<24> off_way;     // 0: the chunk's owner is on it
    bit<4>  strips_on;   // by shape: whether copies lose their values there
    bit<4>  strips_off;  // and elsewhere
#endif
}

#endif // INA_TOFINO_HEADERS_P4
