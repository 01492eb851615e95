// Whole standard_metadata given to actions and copied: a drop of a copy counts when it is copied back.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> op; bit<8> port; }
struct headers_t { h_t h; }
struct meta_t { }

action drop(inout standard_metadata_t each) { mark_to_drop(each); }
action drop_a_copy(in standard_metadata_t each) {
    standard_metadata_t mine = each;
    mark_to_drop(mine);
}

parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = (bit<9>)hdr.h.port;
        sm.mcast_grp = 7;
        log_msg("metadata: {}", {sm});
        if (hdr.h.op == 1) { drop(sm); }
        if (hdr.h.op == 2) { drop_a_copy(sm); }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (hdr.h.op == 3) { mark_to_drop(sm); }
    }
}
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
