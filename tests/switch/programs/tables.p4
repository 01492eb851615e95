// One table of each match kind; the entry's number comes back in the packet.
#include <core.p4>
#include <v1model.p4>

header k_t { bit<32> a; bit<16> b; bit<8> c; bit<8> which; bit<16> result; }
struct headers_t { k_t k; }
struct meta_t { }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.k); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    direct_counter(CounterType.packets_and_bytes) hits;
    action set(bit<16> value) { hdr.k.result = value; }
    action none() { hdr.k.result = 0xffff; }
    action leave() { hdr.k.result = 0xeeee; exit; }
    table exact_t { key = { hdr.k.a: exact; hdr.k.b: exact; } actions = { set; none; leave; } default_action = none; size = 64; counters = hits; }
    table lpm_t { key = { hdr.k.a: lpm; hdr.k.c: exact; } actions = { set; none; } default_action = none; size = 64; }
    table ternary_t { key = { hdr.k.a: ternary; hdr.k.b: ternary; } actions = { set; none; } default_action = none; size = 64; }
    table range_t { key = { hdr.k.b: range; hdr.k.c: exact; } actions = { set; none; } default_action = none; size = 64; }
    table optional_t { key = { hdr.k.a: optional; hdr.k.c: optional; } actions = { set; none; } default_action = none; size = 64; }
    table const_t {
        key = { hdr.k.b: ternary; hdr.k.c: range; } actions = { set; none; }
        const default_action = none;
        const entries = { (0x0100 &&& 0xff00, 0..9): set(1); (0x0100 &&& 0x0f00, _): set(2); (_, 7): set(3); }
    }
    apply {
        sm.egress_spec = 1;
        if (hdr.k.which == 0) { if (exact_t.apply().hit) { hdr.k.c = hdr.k.c + 1; } }
        else if (hdr.k.which == 1) { lpm_t.apply(); }
        else if (hdr.k.which == 2) { ternary_t.apply(); }
        else if (hdr.k.which == 3) { range_t.apply(); }
        else if (hdr.k.which == 4) { optional_t.apply(); }
        else { switch (const_t.apply().action_run) { set: { hdr.k.c = 0xaa; } none: { hdr.k.c = 0xbb; } } }
        hdr.k.which = 0x77;
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
