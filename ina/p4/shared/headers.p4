// Headers of every target, outermost first. ina_h comes from the wire format table.

#ifndef INA_HEADERS_P4
#define INA_HEADERS_P4

#include "constants.p4"
#include "ina_header.p4"
#include "repeat.p4"

// Between the switch and its controller's CPU.
@controller_header("packet_out")
header packet_out_h {
    bit<9> egress_port;
    bit<7> padding;
}

@controller_header("packet_in")
header packet_in_h {
    bit<9> ingress_port;
    bit<7> padding;
}

header ethernet_h {
    bit<48> dst_mac;
    bit<48> src_mac;
    bit<16> ethertype;
}

header ipv4_h {
    bit<4>  version;
    bit<4>  ihl; // in 32-bit words; options stay in the payload
    bit<6>  dscp;
    bit<2>  ecn;
    bit<16> total_bytes;
    bit<16> identification;
    bit<1>  reserved;
    bit<1>  dont_fragment;
    bit<1>  more_fragments;
    bit<13> fragment_offset; // in 8-byte units
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> src_addr;
    bit<32> dst_addr;
}

header udp_h {
    bit<16> src_port;
    bit<16> dst_port;
    bit<16> length_bytes; // this header and what follows
    bit<16> checksum;
}

// v0, v1, ...: the int32 values of a packet, as the two's complement bits that they are summed in.
#define VALUE_FIELD(i, ...) bit<32> v##i;
header values_h {
    REPEAT(VALUE_FIELD)
}

#endif // INA_HEADERS_P4
