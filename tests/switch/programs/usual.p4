// Tests first, of which what a packet does that fails one takes a few assignments.
#include <core.p4>
#include <v1model.p4>

header link_h { bit<16> to; bit<16> kind; }
header head_h {
    bit<4> version; bit<1> odd; bit<1> spare; bit<2> low; bit<8> op;
    bit<16> length; bit<16> total; bit<16> csum; bit<32> value;
}
struct headers_t { link_h link; head_h head; }
struct meta_t { bit<8> reason; bit<8> wanted; }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.link);
        meta.wanted = 3;
        transition select(hdr.link.kind, hdr.link.to) {
            (0x0800 &&& 0xff00, 7): parse_head;
            default: accept;
        }
    }
    state parse_head { pkt.extract(hdr.head); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.head.isValid() && hdr.head.op != 9,
            { hdr.head.length, hdr.head.total, hdr.head.value }, hdr.head.csum, HashAlgorithm.csum16);
    }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(16) sums;
    counter(16, CounterType.packets_and_bytes) drops;
    action set(bit<9> port) { sm.egress_spec = port; }
    action none() { meta.reason = 7; sm.egress_spec = 1; }
    table ops { key = { hdr.head.op: exact; } actions = { set; none; } const default_action = none; size = 64; }
    apply {
        if (!(hdr.head.isValid() && hdr.head.version == 5)) {
            meta.reason = 1;
        } else if (hdr.head.odd == 1 || !(hdr.head.length == 8) || hdr.head.total != hdr.head.length + 8) {
            meta.reason = 2;
        } else if (sm.packet_length > (bit<32>)hdr.head.total + 104 || sm.checksum_error == 1
                   || sm.ingress_port == 6 || meta.wanted != 3 || hdr.head.value < 10) {
            meta.reason = 3;
            drops.count((bit<32>)meta.reason);
        } else {
            bit<32> sum;
            ops.apply();
            sums.read(sum, (bit<32>)(hdr.head.op & 15));
            sum = sum + hdr.head.value;
            sums.write((bit<32>)(hdr.head.op & 15), sum);
            hdr.head.value = sum;
            hdr.head.version = 6;
        }
        if (meta.reason != 0) {
            drops.count((bit<32>)meta.reason);
            hdr.link.to = (bit<16>)meta.reason;
            sm.egress_spec = 3;
        }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr.link); pkt.emit(hdr.head); } }
V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
