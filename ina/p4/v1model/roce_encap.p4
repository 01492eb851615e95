// What packets are in, in mode `roce`: SENDs of unreliable connections between each worker and the switch.
// udp_encap.p4 says what the names are.

#ifndef INA_ROCE_ENCAP_P4
#define INA_ROCE_ENCAP_P4

#include "roce_headers.p4"

// Of messages without immediate data: of one packet, or of several.
const bit<8> SEND_FIRST = 0x20;
const bit<8> SEND_MIDDLE = 0x21;
const bit<8> SEND_LAST = 0x22;
const bit<8> SEND_ONLY = 0x24;

// icrc: of the packet as it is; queue: which of each worker's queue pairs the packet's lane is on.
#define ENCAP_METADATA bit<32> icrc; bit<8> queue;

// A row is of one queue pair: of each worker's, it is number `queue`, and so are those on which all
// workers get what it is for. The source port is the NIC's choice.
#define SENDER_KEY hdr.bth.dest_qp: exact @name("dest_qp");
#define OF_SENDER bit<8> queue
#define AND_OF_SENDER , bit<8> queue
#define KEEP_OF_SENDER meta.queue = queue;
#define PORT_OF_SENDER standard_metadata.ingress_port

#define ENCAP_BYTES (BTH_BYTES + ICRC_BYTES)
#define NOT_IN_ENCAP NOT_A_SEND
#define DROP_REASONS ROCE_DROP_REASONS

#define RECEIVER_KEY meta.queue: exact @name("queue");
// What leaves is a SEND to the queue pair of the receiver's that the packet's lane is on. Its number and
// its place in the message follow from the chunk's, since all who send a chunk say the same of it:
// segment_mask is the packets of a message, a power of two, less one. src_port: what the receiver's
// network spreads its flows by. The lengths are the packet's.
#define ADDRESS_ACTION                                                             \
    bit<32> segments;                                                              \
    action address(bit<48> dst_mac, bit<32> dst_addr, bit<16> src_port,            \
                   bit<24> dest_qp, bit<32> segment_mask) {                        \
        hdr.ethernet.src_mac = hdr.ethernet.dst_mac;                               \
        hdr.ethernet.dst_mac = dst_mac;                                            \
        hdr.ipv4.src_addr = hdr.ipv4.dst_addr;                                     \
        hdr.ipv4.dst_addr = dst_addr;                                              \
        SAME_IPV4                                                                  \
        hdr.ipv4.ttl = 64;                                                         \
        hdr.udp.src_port = src_port;                                               \
        hdr.udp.dst_port = ROCE_UDP_PORT;                                          \
        hdr.udp.checksum = 0;                                                      \
        hdr.bth.opcode = SEND_ONLY;                                                \
        hdr.bth.solicited = 0;                                                     \
        hdr.bth.migrated = 1;                                                      \
        hdr.bth.congestion = 0;                                                    \
        hdr.bth.dest_qp = dest_qp;                                                 \
        hdr.bth.ack_request = 0;                                                   \
        hdr.bth.reserved = 0;                                                      \
        hdr.bth.psn = hdr.ina.seq[23:0];                                           \
        segments = segment_mask;                                                   \
    }
#define BEFORE_ADDRESS segments = 0;
#define AFTER_ADDRESS                                                              \
    if (segments != 0) {                                                           \
        if ((hdr.ina.seq & segments) == 0) {                                       \
            hdr.bth.opcode = SEND_FIRST;                                           \
        } else if ((hdr.ina.seq & segments) == segments) {                         \
            hdr.bth.opcode = SEND_LAST;                                            \
        } else {                                                                   \
            hdr.bth.opcode = SEND_MIDDLE;                                          \
        }                                                                          \
    }

#endif // INA_ROCE_ENCAP_P4
