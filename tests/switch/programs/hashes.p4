// The hash algorithms, over fields that are not byte-aligned.
#include <core.p4>
#include <v1model.p4>

header h_t { bit<32> a; bit<16> b; bit<5> c; bit<3> d; bit<16> crc16; bit<32> crc32; bit<16> csum; bit<16> xor; bit<64> same; }
struct headers_t { h_t h; }
struct meta_t { }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.h); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hash(hdr.h.crc16, HashAlgorithm.crc16, 16w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, 32w0x10000);
        hash(hdr.h.crc32, HashAlgorithm.crc32, 32w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, 64w0x100000000);
        hash(hdr.h.csum, HashAlgorithm.csum16, 16w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, 32w0x10000);
        hash(hdr.h.xor, HashAlgorithm.xor16, 16w0, { hdr.h.a, hdr.h.b, hdr.h.c, hdr.h.d }, 32w0x10000);
        hash(hdr.h.same, HashAlgorithm.identity, 64w5, { hdr.h.a, hdr.h.b }, 64w1000);
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
