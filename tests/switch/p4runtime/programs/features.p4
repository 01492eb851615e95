// One table for each match kind, every kind of counter, packets to and from the CPU, multicast:
// what the tests of the P4Runtime service need. Not a useful switch.
#include <core.p4>
#include <v1model.p4>

#define CPU_PORT 510

@controller_header("packet_in")
header packet_in_t {
    bit<9> ingress_port;
    bit<7> reason;
}

@controller_header("packet_out")
header packet_out_t {
    bit<9> egress_port;
    bit<7> padding;
}

header ethernet_t {
    bit<48> destination;
    bit<48> source;
    bit<16> ether_type;
}

header ipv4_t {
    bit<4>  version;
    bit<4>  ihl;
    bit<8>  tos;
    bit<16> total_length;
    bit<16> id;
    bit<16> fragment;
    bit<8>  ttl;
    bit<8>  protocol;
    bit<16> checksum;
    bit<32> source;
    bit<32> destination;
}

struct headers_t {
    packet_out_t packet_out;
    packet_in_t  packet_in;
    ethernet_t   ethernet;
    ipv4_t       ipv4;
}

struct metadata_t {
    bit<16> tag;
}

parser FeaturesParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }
    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition parse_ethernet;
    }
    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ether_type) {
            0x0800: parse_ipv4;
            default: accept;
        }
    }
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }
}

control FeaturesVerify(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FeaturesIngress(inout headers_t hdr, inout metadata_t meta,
                        inout standard_metadata_t standard_metadata) {
    counter(8, CounterType.packets_and_bytes) port_counter;
    counter(4, CounterType.packets) packet_counter;
    direct_counter(CounterType.packets_and_bytes) bridge_counter;

    action drop() {
        mark_to_drop(standard_metadata);
    }
    action forward(bit<9> port) {
        standard_metadata.egress_spec = port;
        bridge_counter.count();
    }
    action discard() {
        mark_to_drop(standard_metadata);
        bridge_counter.count();
    }
    action to_cpu(bit<7> reason) {
        standard_metadata.egress_spec = CPU_PORT;
        hdr.packet_in.setValid();
        hdr.packet_in.ingress_port = standard_metadata.ingress_port;
        hdr.packet_in.reason = reason;
    }
    action multicast(bit<16> group) {
        standard_metadata.mcast_grp = group;
    }
    action set_tag(bit<16> tag) {
        meta.tag = tag;
    }
    direct_counter(CounterType.packets) class_counter;
    action set_class(bit<8> class) {
        hdr.ipv4.tos = class;
        class_counter.count();
    }
    action route(bit<9> port, bit<48> destination) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.destination = destination;
    }

    table bridge {
        key = { hdr.ethernet.destination: exact; }
        actions = { forward; discard; @defaultonly NoAction; }
        counters = bridge_counter;
        size = 16;
        default_action = discard();
    }
    table routes {
        key = { hdr.ipv4.destination: lpm; }
        actions = { route; multicast; drop; NoAction; }
        size = 64;
        default_action = NoAction();
    }
    table acl {
        key = {
            hdr.ipv4.source: ternary;
            hdr.ipv4.protocol: range;
            standard_metadata.ingress_port: optional;
        }
        actions = { drop; to_cpu; multicast; NoAction; }
        size = 32;
        const default_action = NoAction();
    }
    table kinds {
        key = { hdr.ethernet.ether_type: exact; }
        actions = { set_tag; NoAction; }
        default_action = NoAction();
        const entries = {
            0x0800: set_tag(4);
            0x86dd: set_tag(6);
        }
    }
    table classes {
        key = {
            hdr.ipv4.tos: ternary;
            hdr.ipv4.ttl: range;
        }
        actions = { set_class; }
        counters = class_counter;
        const entries = {
            (0x01 &&& 0x03, 0 .. 9): set_class(1);
            (_, 10 .. 63): set_class(2);
            (0x03, _): set_class(3);
        }
    }
    table reserved {
        key = { hdr.ipv4.destination: lpm; }
        actions = { set_tag; NoAction; }
        const default_action = NoAction();
        const entries = {
            0x7f000000 &&& 0xff000000: set_tag(1);
            0x0a000000 &&& 0xffffff00: set_tag(2);
        }
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else {
            port_counter.count((bit<32>) (standard_metadata.ingress_port & 7));
            kinds.apply();
            if (meta.tag != 0) packet_counter.count((bit<32>) (meta.tag & 3));
            bridge.apply();
            if (hdr.ipv4.isValid()) {
                reserved.apply();
                classes.apply();
                routes.apply();
                acl.apply();
            }
        }
    }
}

control FeaturesEgress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    apply {
        if (standard_metadata.egress_rid != 0)
            hdr.ethernet.source[15:0] = standard_metadata.egress_rid;
    }
}

control FeaturesUpdate(inout headers_t hdr, inout metadata_t meta) {
    apply { }
}

control FeaturesDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
    }
}

V1Switch(FeaturesParser(), FeaturesVerify(), FeaturesIngress(), FeaturesEgress(), FeaturesUpdate(),
         FeaturesDeparser()) main;
