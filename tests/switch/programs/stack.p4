// A header stack: parsed in a loop, pushed and popped, indexed at run time.
#include <core.p4>
#include <v1model.p4>

header top_t { bit<8> op; bit<8> index; bit<8> seen; }
header label_t { bit<7> value; bit<1> last; }
struct headers_t { top_t top; label_t[4] labels; }
struct meta_t { }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.top); transition labels; }
    state labels {
        pkt.extract(hdr.labels.next);
        transition select(hdr.labels.last.last) { 0: labels; 1: accept; }
    }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.top.seen = sm.parser_error == error.StackOutOfBounds ? 8w1 : (sm.parser_error == error.PacketTooShort ? 8w2 : 8w0);
        if (hdr.top.op == 1) { hdr.labels.push_front(1); hdr.labels[0].setValid(); hdr.labels[0].value = 0x55; }
        else if (hdr.top.op == 2) { hdr.labels.pop_front(2); }
        else if (hdr.top.op == 3) { hdr.labels[hdr.top.index].value = 0x11; }
        else if (hdr.top.op == 4) { hdr.labels[3] = hdr.labels[0]; }
        else if (hdr.top.op == 5) { hdr.labels[1].setInvalid(); }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
