// What packets are in, in mode `transparent`: SENDs of reliable connections, each on its way from a worker to
// the next one of a ring. udp_encap.p4 says what the names are.
//
// A flow is what one worker sends to the next. Its worker's index is the flow's: a result has a copy on each,
// in place of the packet that came on it. It may have several connections: each has a part of the chunks.

#ifndef INA_RING_ENCAP_P4
#define INA_RING_ENCAP_P4

#include "roce_headers.p4"

// Of messages without immediate data: of one packet, or of several.
const bit<8> SEND_FIRST = 0x00;
const bit<8> SEND_MIDDLE = 0x01;
const bit<8> SEND_LAST = 0x02;
const bit<8> SEND_ONLY = 0x04;
// What a receiver says to its sender: ACK or NAK; and that a queue on the way is long.
const bit<8> ACKNOWLEDGE = 0x11;
const bit<8> CONGESTION_NOTIFICATION = 0x81;

const bit<16> ETHERTYPE_VLAN = 0x8100;
const bit<16> ETHERTYPE_SERVICE_VLAN = 0x88A8;

// A row is of one connection: a worker has one for each lane.
#undef MEMBERS_TOTAL
#define MEMBERS_TOTAL 32768

// icrc: of the packet as it is; next_port: towards whom its flow is; queue: which of a flow's connections.
#define ENCAP_METADATA bit<32> icrc; bit<9> next_port; bit<8> queue;

// A row is of one connection: of the addresses at its ends, too, and of the receiver's queue pair. A chunk's
// packets are on connections of the same number on all flows.
#define SENDER_KEY                                     \
    hdr.ipv4.dst_addr: exact @name("dst_addr");        \
    hdr.bth.dest_qp: exact @name("dest_qp");
#define OF_SENDER bit<9> next_port, bit<8> queue
#define AND_OF_SENDER , bit<9> next_port, bit<8> queue
#define KEEP_OF_SENDER meta.next_port = next_port; meta.queue = queue;
#define PORT_OF_SENDER meta.next_port

#define ENCAP_BYTES (BTH_BYTES + ICRC_BYTES)
#define NOT_IN_ENCAP NOT_A_SEND
#define DROP_REASONS ROCE_DROP_REASONS

#define RECEIVER_KEY meta.queue: exact @name("queue");
// What leaves on a flow is what its worker has sent, as its next one expects it, with the sum for payload:
// from src_mac and src_addr, to the queue pair dest_qp, with the number that this chunk's packet has there.
// All connections send their chunks in order, each 2^lane_shift-th: so that is first_psn and how many of
// these come before. And it is at the same place in its message on all: segment_mask is a message's packets,
// a power of two, less one, of a flow's only connection.
// next_worker: who gets it. The end of a message asks for the acknowledgement of all before it.
// A mark that any of the packets brought is on all: adapters slow down by these alone.
#define ADDRESS_ACTION                                                             \
    bit<32> segments;                                                              \
    action address(bit<48> src_mac, bit<32> src_addr, bit<48> dst_mac,             \
                   bit<32> dst_addr, bit<16> src_port, bit<24> dest_qp,            \
                   bit<24> first_psn, bit<8> lane_shift, bit<32> segment_mask,     \
                   bit<8> next_worker) {                                           \
        hdr.ethernet.src_mac = src_mac;                                            \
        hdr.ethernet.dst_mac = dst_mac;                                            \
        hdr.ipv4.src_addr = src_addr;                                              \
        hdr.ipv4.dst_addr = dst_addr;                                              \
        SAME_IPV4                                                                  \
        hdr.ipv4.ttl = 64;                                                         \
        hdr.udp.src_port = src_port;                                               \
        hdr.udp.dst_port = ROCE_UDP_PORT;                                          \
        hdr.udp.checksum = 0;                                                      \
        hdr.bth.opcode = SEND_MIDDLE;                                              \
        hdr.bth.solicited = 0;                                                     \
        hdr.bth.migrated = 1;                                                      \
        hdr.bth.congestion = 0;                                                    \
        hdr.bth.dest_qp = dest_qp;                                                 \
        hdr.bth.ack_request = 0;                                                   \
        hdr.bth.reserved = 0;                                                      \
        hdr.bth.psn = first_psn + (hdr.ina.seq >> lane_shift)[23:0];               \
        hdr.ina.worker = next_worker;                                              \
        segments = segment_mask;                                                   \
    }
#define BEFORE_ADDRESS segments = 0;
#define AFTER_ADDRESS                                                              \
    if ((hdr.ina.seq & segments) == segments) {                                    \
        hdr.bth.ack_request = 1;                                                   \
        if (segments == 0) {                                                       \
            hdr.bth.opcode = SEND_ONLY;                                            \
        } else {                                                                   \
            hdr.bth.opcode = SEND_LAST;                                            \
        }                                                                          \
    } else if ((hdr.ina.seq & segments) == 0) {                                    \
        hdr.bth.opcode = SEND_FIRST;                                               \
    }                                                                              \
    if ((hdr.ina.flags & INA_FLAG_ECN) != 0 && hdr.ipv4.ecn != ECN_NOT_ECT) {      \
        hdr.ipv4.ecn = ECN_CE;                                                     \
    }

#endif // INA_RING_ENCAP_P4
