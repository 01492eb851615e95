#include <core.p4>
#include <v1model.p4>

header h_t { bit<8> x; }
header_union either_t { h_t one; h_t other; }
struct headers_t { h_t h; either_t either; }
struct meta_t { bit<8> color; }

parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    
    state start {
        pkt.extract(hdr.h);
        transition select(hdr.h.x) { 1: one; default: accept; }
    }
    state one { pkt.extract(hdr.either.one); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        hdr.either.other.x = 1;
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
