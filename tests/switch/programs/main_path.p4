// Headers one behind the other, with fields of less than a byte beside ones that are written.
#include <core.p4>
#include <v1model.p4>

header outer_h { bit<3> kept; bit<1> mark; bit<4> also_kept; bit<8> op; bit<16> kind; }
header inner_h { bit<12> kept; bit<4> low; bit<24> number; bit<8> port; }
header other_h { bit<16> word; }
struct headers_t { outer_h outer; inner_h inner; other_h other; }
struct meta_t { }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.outer);
        transition select(hdr.outer.kind) {
            0x0100 &&& 0xff00: parse_other;
            1: parse_inner;
            default: accept;
        }
    }
    state parse_inner { pkt.extract(hdr.inner); transition accept; }
    state parse_other { pkt.extract(hdr.other); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        if (hdr.outer.op == 1) { hdr.inner.setInvalid(); }
        if (hdr.outer.op == 2) { hdr.outer.setInvalid(); }
        if (hdr.outer.op == 3 && hdr.inner.port == 0) { mark_to_drop(sm); }
        if (hdr.outer.op == 4) { sm.mcast_grp = 1; }
        hdr.outer.mark = 1;
        hdr.inner.low = hdr.inner.low + 1;
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.inner.number = hdr.inner.number + (bit<24>)sm.egress_rid;
        hdr.other.word = hdr.other.word ^ 0xffff;
    }
}
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) {
    apply { pkt.emit(hdr.outer); pkt.emit(hdr.inner); pkt.emit(hdr.other); }
}
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
