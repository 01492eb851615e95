// csum16: verified behind the parser, updated before sending, both under a condition.
#include <core.p4>
#include <v1model.p4>

header ip_t { bit<4> version; bit<4> ihl; bit<6> dscp; bit<2> ecn; bit<16> len; bit<16> id; bit<3> flags; bit<13> frag;
    bit<8> ttl; bit<8> proto; bit<16> csum; bit<32> src; bit<32> dst; }
header extra_t { bit<12> a; bit<4> b; bit<16> csum; bit<48> c; }
struct headers_t { ip_t ip; extra_t extra; }
struct meta_t { bit<1> skip; }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.ip); transition select(hdr.ip.proto) { 99: extra; default: accept; } }
    state extra { pkt.extract(hdr.extra); transition accept; }
}
control Verify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.ip.ihl == 5, { hdr.ip.version, hdr.ip.ihl, hdr.ip.dscp, hdr.ip.ecn, hdr.ip.len, hdr.ip.id,
            hdr.ip.flags, hdr.ip.frag, hdr.ip.ttl, hdr.ip.proto, hdr.ip.src, hdr.ip.dst }, hdr.ip.csum, HashAlgorithm.csum16);
    }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.ip.id = (bit<16>)sm.checksum_error;
        hdr.ip.ttl = hdr.ip.ttl - 1;
        if (hdr.ip.dscp == 63) { meta.skip = 1; }
        if (hdr.ip.dscp == 62) { hdr.extra.setValid(); hdr.extra.a = 0xabc; hdr.extra.b = 0xd; hdr.extra.c = 0x123456789abc; }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control Update(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(meta.skip == 0, { hdr.ip.version, hdr.ip.ihl, hdr.ip.dscp, hdr.ip.ecn, hdr.ip.len, hdr.ip.id,
            hdr.ip.flags, hdr.ip.frag, hdr.ip.ttl, hdr.ip.proto, hdr.ip.src, hdr.ip.dst }, hdr.ip.csum, HashAlgorithm.csum16);
        update_checksum(hdr.extra.isValid(), { hdr.extra.a, hdr.extra.b, hdr.extra.c, hdr.ip.src }, hdr.extra.csum, HashAlgorithm.csum16);
    }
}
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), Verify(), MyIngress(), MyEgress(), Update(), Emit()) main;
