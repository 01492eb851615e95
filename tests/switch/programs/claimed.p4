// Tables and counters between two uses of a register: one with a counter of its own, of two fields
// in two words, one that is matched by priority.
#include <core.p4>
#include <v1model.p4>

header claim_t { bit<8> slot; bit<8> op; bit<40> who; bit<48> where; bit<32> before; bit<16> found; }
struct headers_t { claim_t claim; }
struct meta_t { }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.claim); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(16) slots;
    counter(16, CounterType.packets_and_bytes) claims;
    counter(4, CounterType.packets) taken;
    direct_counter(CounterType.packets_and_bytes) hits;

    action is_known(bit<16> value) { hdr.claim.found = value; }
    action is_odd() { taken.count(2); hdr.claim.found = 0xdead; }
    action nobody() { hdr.claim.found = 0; }
    table owners {
        key = { hdr.claim.who: exact; hdr.claim.where: exact; }
        actions = { is_known; is_odd; @defaultonly nobody; }
        const default_action = nobody;
        size = 32;
        counters = hits;
    }
    action is_kind(bit<16> value) { hdr.claim.found = hdr.claim.found + value; }
    table kinds {
        key = { hdr.claim.op: ternary; hdr.claim.slot: range; }
        actions = { is_kind; @defaultonly NoAction; }
        const default_action = NoAction;
        size = 512;
    }
    apply {
        sm.egress_spec = 1;
        bit<32> value;
        slots.read(value, (bit<32>)(hdr.claim.slot & 15));
        hdr.claim.before = value;
        if (owners.apply().hit) {
            claims.count((bit<32>)hdr.claim.slot); // there are no more than 16
            value = value + 1;
        }
        if (hdr.claim.op != 9) {
            kinds.apply();
            taken.count((bit<32>)hdr.claim.op);
        }
        value = value + (bit<32>)hdr.claim.found;
        slots.write((bit<32>)(hdr.claim.slot & 15), value);
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
