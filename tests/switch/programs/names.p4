// Names that P4 takes and C does not like: one name for a table, a counter and a register; words of C.
#include <core.p4>
#include <v1model.p4>

header size { bit<8> linux; bit<8> NULL; bit<8> errno; bit<8> out_of; }
struct headers_t { size gathered; }
struct meta_t { bit<8> unix; }

parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.gathered); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    @name(".p") register<bit<8>>(4) p;
    @name(".S") register<bit<8>>(8) s;
    @name(".UINT32_MAX") register<bit<8>>(2) most;
    @name("one") register<bit<8>>(16) one_register;
    @name("one") counter(4, CounterType.packets) one_counter;
    action set(bit<8> value) { hdr.gathered.NULL = value; }
    @name("one") table one_table {
        key = { hdr.gathered.linux: exact; }
        actions = { set; NoAction; }
        default_action = NoAction;
    }
    @name(".memory") table memory {
        key = { hdr.gathered.errno: exact; }
        actions = { set; NoAction; }
        const entries = { 9: set(99); }
        default_action = NoAction;
    }
    apply {
        sm.egress_spec = 1;
        p.read(meta.unix, (bit<32>)hdr.gathered.linux);
        p.write((bit<32>)hdr.gathered.linux, (meta.unix + 1) & 7);
        s.read(hdr.gathered.out_of, (bit<32>)meta.unix);
        s.write((bit<32>)meta.unix, hdr.gathered.linux);
        most.write(1, hdr.gathered.linux);
        one_register.write(3, hdr.gathered.linux);
        one_counter.count(2);
        one_table.apply();
        memory.apply();
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
