// Tables and types that P4Info and the BMv2 JSON say differently: a table that runs in place, one that no packet
// reaches, translated types, an error as a key, const tables without an entry.
#include <core.p4>
#include <v1model.p4>

@p4runtime_translation("ina.example/port", 32)
type bit<9> port_t;
@p4runtime_translation("ina.example/name", string)
type bit<16> name_t;

@controller_header("packet_in")
header packet_in_t { port_t port; bit<7> padding; }

header h_t { bit<8> x; bit<8> y; name_t name; }
struct headers_t { packet_in_t packet_in; h_t h; }
struct meta_t { port_t port; }

parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        pkt.extract(hdr.h);
        verify(hdr.h.x != 0, error.HeaderTooShort);
        transition accept;
    }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action mark() { hdr.h.y = 7; }
    action set(port_t port) { sm.egress_spec = (bit<9>)port; }
    action drop() { mark_to_drop(sm); }
    table keyless { actions = { mark; } const default_action = mark; }
    table by_port {
        key = { meta.port: exact; }
        actions = { set; NoAction; }
        default_action = NoAction;
    }
    table by_name { key = { hdr.h.name: exact; } actions = { NoAction; } default_action = NoAction; }
    table by_error { key = { sm.parser_error: exact; } actions = { drop; NoAction; } default_action = NoAction; }
    table empty {
        key = { hdr.h.x: exact; }
        actions = { drop; NoAction; }
        const entries = { }
        default_action = NoAction;
    }
    table unreachable { key = { hdr.h.x: exact; } actions = { NoAction; } default_action = NoAction; }
    apply {
        meta.port = (port_t)sm.ingress_port;
        keyless.apply();
        by_port.apply();
        by_name.apply();
        by_error.apply();
        empty.apply();
        bit<8> seven = 7;
        if (seven == 7) { return; } else { unreachable.apply(); }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        if (sm.egress_port == 510) {
            hdr.packet_in.setValid();
            hdr.packet_in.port = meta.port;
        }
    }
}
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
