// Every operator, chosen by `op`; operands and results in one header.
#include <core.p4>
#include <v1model.p4>

header calc_t {
    bit<8> op;
    bit<8> a8; bit<8> b8; bit<8> r8;
    bit<32> a32; bit<32> b32; bit<32> r32;
    bit<64> a64; bit<64> b64; bit<64> r64;
    bit<128> a128; bit<128> b128; bit<128> r128;
    int<16> s; int<16> t; int<16> rs;
    bit<3> x; bit<5> y; bit<8> xy;
}
struct headers_t { calc_t c; }
struct meta_t { }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.c); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.c.xy = hdr.c.x ++ hdr.c.y;
        if (hdr.c.op == 0) {
            hdr.c.r8 = hdr.c.a8 + hdr.c.b8; hdr.c.r32 = hdr.c.a32 + hdr.c.b32;
            hdr.c.r64 = hdr.c.a64 + hdr.c.b64; hdr.c.r128 = hdr.c.a128 + hdr.c.b128;
            hdr.c.rs = hdr.c.s + hdr.c.t;
        } else if (hdr.c.op == 1) {
            hdr.c.r8 = hdr.c.a8 - hdr.c.b8; hdr.c.r32 = hdr.c.a32 - hdr.c.b32;
            hdr.c.r64 = hdr.c.a64 - hdr.c.b64; hdr.c.r128 = hdr.c.a128 - hdr.c.b128;
            hdr.c.rs = hdr.c.s - hdr.c.t;
        } else if (hdr.c.op == 2) {
            hdr.c.r8 = hdr.c.a8 * hdr.c.b8; hdr.c.r32 = hdr.c.a32 * hdr.c.b32;
            hdr.c.r64 = hdr.c.a64 * hdr.c.b64; hdr.c.r128 = hdr.c.a128 * hdr.c.b128;
            hdr.c.rs = hdr.c.s * hdr.c.t;
        } else if (hdr.c.op == 3) {
            hdr.c.r8 = hdr.c.a8 |+| hdr.c.b8; hdr.c.r32 = hdr.c.a32 |+| hdr.c.b32;
            hdr.c.r64 = hdr.c.a64 |+| hdr.c.b64; hdr.c.rs = hdr.c.s |+| hdr.c.t;
        } else if (hdr.c.op == 4) {
            hdr.c.r8 = hdr.c.a8 |-| hdr.c.b8; hdr.c.r32 = hdr.c.a32 |-| hdr.c.b32;
            hdr.c.r64 = hdr.c.a64 |-| hdr.c.b64; hdr.c.rs = hdr.c.s |-| hdr.c.t;
        } else if (hdr.c.op == 5) {
            hdr.c.r8 = hdr.c.a8 << hdr.c.b8; hdr.c.r32 = hdr.c.a32 << hdr.c.b8;
            hdr.c.r64 = hdr.c.a64 << hdr.c.b8; hdr.c.r128 = hdr.c.a128 << hdr.c.b8;
            hdr.c.rs = hdr.c.s << 3;
        } else if (hdr.c.op == 6) {
            hdr.c.r8 = hdr.c.a8 >> hdr.c.b8; hdr.c.r32 = hdr.c.a32 >> hdr.c.b8;
            hdr.c.r64 = hdr.c.a64 >> hdr.c.b8; hdr.c.r128 = hdr.c.a128 >> hdr.c.b8;
            hdr.c.rs = hdr.c.s >> 3;
        } else if (hdr.c.op == 7) {
            hdr.c.r8 = hdr.c.a8 & hdr.c.b8; hdr.c.r32 = hdr.c.a32 | hdr.c.b32;
            hdr.c.r64 = hdr.c.a64 ^ hdr.c.b64; hdr.c.r128 = ~hdr.c.a128; hdr.c.rs = -hdr.c.s;
        } else if (hdr.c.op == 8) {
            hdr.c.r8 = hdr.c.a8 < hdr.c.b8 ? 8w1 : 8w0; hdr.c.r32 = hdr.c.a32 >= hdr.c.b32 ? 32w1 : 32w0;
            hdr.c.r64 = hdr.c.a64 == hdr.c.b64 ? 64w1 : 64w0; hdr.c.r128 = hdr.c.a128 > hdr.c.b128 ? 128w1 : 128w0;
            hdr.c.rs = hdr.c.s < hdr.c.t ? 16s1 : 16s0;
        } else {
            hdr.c.r8 = hdr.c.a32[19:12]; hdr.c.r32 = (bit<32>)hdr.c.a8; hdr.c.r64 = hdr.c.a32 ++ hdr.c.b32;
            hdr.c.r128 = (bit<128>)hdr.c.a64; hdr.c.rs = (int<16>)(int<8>)hdr.c.a8;
            hdr.c.a32[15:8] = hdr.c.b8;
        }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
