// What an entry says, needed later or not; header fields that change on some ways through ingress.
#include <core.p4>
#include <v1model.p4>

header head_h {
    bit<8> flow; bit<8> op; bit<4> high; bit<4> low; bit<8> first; bit<16> second; bit<16> third;
    bit<8> shown;
}
struct headers_t { head_h head; }
struct meta_t {
    bit<8> left; bit<16> right; bit<1> flag; bit<8> twisted; bit<16> early; bit<8> again; bit<16> mixed;
    bit<8> parsed;
}
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.head);
        meta.parsed = 5;
        transition accept;
    }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<16>>(16) sums;

    // mixed and twisted: two actions say different things, or more than the entry does.
    action both(bit<8> left, bit<16> right) {
        meta.left = left; meta.right = right; meta.mixed = right; meta.twisted = left ^ hdr.head.op;
        meta.early = right; meta.again = left; meta.parsed = left;
    }
    action one(bit<8> left) { meta.left = left; meta.mixed = (bit<16>)left; meta.again = left; }
    action flagged() { meta.flag = 1; }
    action nothing() { }
    table flows {
        key = { hdr.head.flow: exact; }
        actions = { both; one; flagged; nothing; }
        const default_action = nothing; size = 64;
    }
    apply {
        hdr.head.second = hdr.head.second + meta.early; // before the table: 0
        flows.apply();
        if (hdr.head.op == 3) { meta.again = 77; }
        bit<16> sum;
        sums.read(sum, (bit<32>)(hdr.head.op & 15));
        if (hdr.head.op & 1 == 1) {
            sum = sum + hdr.head.third + meta.right;
            if (hdr.head.first > 100) {
                hdr.head.first = hdr.head.first - (bit<8>)meta.flag;
                hdr.head.third = sum;
            } else if (hdr.head.first == 7) {
                hdr.head.high = hdr.head.low;
            }
            if (hdr.head.high == 2) { hdr.head.low = 9; }
        } else if (hdr.head.op == 4) {
            hdr.head.third = meta.mixed;
        }
        sums.write((bit<32>)(hdr.head.op & 15), sum);
        hdr.head.shown = meta.left + meta.again + meta.twisted + (bit<8>)meta.early + meta.parsed;
        if (hdr.head.op == 8) { mark_to_drop(sm); } else { sm.egress_spec = 1; }
        if (hdr.head.op == 9) { sm.mcast_grp = 1; }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (meta.flag == 1) { hdr.head.flow = 0xff; }
        hdr.head.second = hdr.head.second + meta.right + sm.egress_rid;
        meta.right = 0;
    }
}
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.head); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
