// Lookahead, verify, masks, several keys, advance; parser errors go on to ingress.
#include <core.p4>
#include <v1model.p4>

header a_t { bit<4> kind; bit<12> rest; }
header b_t { bit<16> x; bit<8> y; }
header err_t { bit<8> code; }
struct headers_t { err_t err; a_t a; b_t b; }
struct meta_t { bit<8> peeked; bit<8> path; }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        meta.peeked = pkt.lookahead<bit<8>>();
        pkt.extract(hdr.a);
        verify(hdr.a.rest != 0xfff, error.ParserInvalidArgument);
        transition select(hdr.a.kind, meta.peeked) {
            (1, _): one;
            (2 &&& 0xe, 0x20 &&& 0xf0): two;
            (2 &&& 0xe, _): three;
            (4..6, _): four;
        }
    }
    state one { pkt.extract(hdr.b); meta.path = 1; transition accept; }
    state two { meta.path = 2; transition accept; }
    state three { pkt.advance(16); pkt.extract(hdr.b); meta.path = 3; transition accept; }
    state four { meta.path = 4; transition select(pkt.lookahead<bit<16>>()) { 0xbeef: one; default: accept; } }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.err.setValid();
        if (sm.parser_error == error.NoError) { hdr.err.code = meta.path; }
        else if (sm.parser_error == error.PacketTooShort) { hdr.err.code = 0xe1; }
        else if (sm.parser_error == error.NoMatch) { hdr.err.code = 0xe2; }
        else if (sm.parser_error == error.ParserInvalidArgument) { hdr.err.code = 0xe3; }
        if (hdr.b.isValid()) { hdr.b.y = hdr.b.y + 1; }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
