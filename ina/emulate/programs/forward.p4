// What a switch runs beside the one that sums: each frame goes where its destination is.

#include <core.p4>
#include <v1model.p4>

header ethernet_h {
    bit<48> dst_mac;
    bit<48> src_mac;
    bit<16> ethertype;
}

struct headers_t { ethernet_h ethernet; }
struct metadata_t { }

parser ForwardParser(packet_in packet, out headers_t hdr, inout metadata_t meta,
                     inout standard_metadata_t standard_metadata) {
    state start {
        packet.extract(hdr.ethernet);
        transition accept;
    }
}

control ForwardIngress(inout headers_t hdr, inout metadata_t meta,
                       inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) dmac_counter;

    action drop() { mark_to_drop(standard_metadata); }
    action forward(bit<9> port) { standard_metadata.egress_spec = port; }

    table dmac {
        key = { hdr.ethernet.dst_mac: exact @name("dst_mac"); }
        actions = { forward; drop; }
        default_action = drop();
        counters = dmac_counter;
        size = 4096;
    }

    apply {
        if (hdr.ethernet.isValid()) {
            dmac.apply();
        } else {
            drop();
        }
    }
}

control ForwardEgress(inout headers_t hdr, inout metadata_t meta,
                      inout standard_metadata_t standard_metadata) { apply { } }
control ForwardVerify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control ForwardCompute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control ForwardDeparser(packet_out packet, in headers_t hdr) {
    apply { packet.emit(hdr.ethernet); }
}

@pkginfo(name="forward", version="1")
V1Switch(ForwardParser(), ForwardVerify(), ForwardIngress(), ForwardEgress(), ForwardCompute(),
         ForwardDeparser()) main;
