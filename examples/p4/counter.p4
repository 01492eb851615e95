// Sends every frame back to where it came from, and counts frames and bytes by port.
#include <core.p4>
#include <v1model.p4>

const bit<32> PORTS = 512; // ports are 9 bits wide

header ethernet_h {
    bit<48> dst_mac;
    bit<48> src_mac;
    bit<16> ether_type;
}

struct headers_t {
    ethernet_h ethernet;
}

struct metadata_t {}

parser CounterParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control CounterIngress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard) {
    counter(PORTS, CounterType.packets_and_bytes) per_port;

    apply {
        per_port.count((bit<32>) standard.ingress_port);
        standard.egress_spec = standard.ingress_port;
    }
}

control NoEgress(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    apply {}
}

control NoChecksum(inout headers_t hdr, inout metadata_t meta) {
    apply {}
}

control CounterDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.ethernet);
    }
}

V1Switch(CounterParser(), NoChecksum(), CounterIngress(), NoEgress(), NoChecksum(),
         CounterDeparser()) main;
