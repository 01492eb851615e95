// Multicast, egress for each copy, dropping on both sides, what queue and timestamps say.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; bit<8> port; bit<16> group; bit<16> rid; bit<16> out_port; bit<32> depth; bit<32> kind; bit<48> stamp; bit<32> length; bit<8> count; }
struct headers_t { h_t h; }
struct meta_t { bit<8> local; }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = (bit<9>)hdr.h.port;
        sm.mcast_grp = hdr.h.group;
        if (hdr.h.op == 1) { mark_to_drop(sm); }
        if (hdr.h.op == 2) { mark_to_drop(sm); sm.mcast_grp = hdr.h.group; }
        if (hdr.h.op == 3) { mark_to_drop(sm); sm.egress_spec = 5; }
        if (hdr.h.op == 5) { truncate(10); }
        meta.local = 1;
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.h.rid = sm.egress_rid;
        hdr.h.out_port = (bit<16>)sm.egress_port;
        hdr.h.depth = (bit<32>)sm.enq_qdepth;
        hdr.h.kind = sm.instance_type;
        hdr.h.stamp = sm.ingress_global_timestamp;
        hdr.h.length = sm.packet_length;
        hdr.h.count = hdr.h.count + meta.local;
        meta.local = meta.local + 1;
        if (hdr.h.op == 4 && sm.egress_port == 2) { mark_to_drop(sm); }
    }
}
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
