// Registers that are indexed alike, 16 values in a row, counters, indices out of range.
#include <core.p4>
#include <v1model.p4>
header top_t { bit<8> op; bit<32> index; bit<32> before; }
header values_t { bit<32> v0; bit<32> v1; bit<32> v2; bit<32> v3; bit<32> v4; bit<32> v5; bit<32> v6; bit<32> v7; bit<32> v8; bit<32> v9; bit<32> v10; bit<32> v11; bit<32> v12; bit<32> v13; bit<32> v14; bit<32> v15; }
struct headers_t { top_t top; values_t values; }
struct meta_t { }
parser Parse(packet_in pkt, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { pkt.extract(hdr.top); transition select(hdr.top.op) { 9: accept; default: values; } }
    state values { pkt.extract(hdr.values); transition accept; }
}
control MyIngress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    register<bit<32>>(32) rounds;
    register<bit<5>>(8) small;
    counter(4, CounterType.packets_and_bytes) ops;
    register<bit<32>>(32) value_0;
    register<bit<32>>(32) value_1;
    register<bit<32>>(32) value_2;
    register<bit<32>>(32) value_3;
    register<bit<32>>(32) value_4;
    register<bit<32>>(32) value_5;
    register<bit<32>>(32) value_6;
    register<bit<32>>(32) value_7;
    register<bit<32>>(32) value_8;
    register<bit<32>>(32) value_9;
    register<bit<32>>(32) value_10;
    register<bit<32>>(32) value_11;
    register<bit<32>>(32) value_12;
    register<bit<32>>(32) value_13;
    register<bit<32>>(32) value_14;
    register<bit<32>>(32) value_15;
    action add() {
        bit<32> v;
        value_0.read(v, hdr.top.index); v = v + hdr.values.v0; hdr.values.v0 = v; value_0.write(hdr.top.index, v);
        value_1.read(v, hdr.top.index); v = v + hdr.values.v1; hdr.values.v1 = v; value_1.write(hdr.top.index, v);
        value_2.read(v, hdr.top.index); v = v + hdr.values.v2; hdr.values.v2 = v; value_2.write(hdr.top.index, v);
        value_3.read(v, hdr.top.index); v = v + hdr.values.v3; hdr.values.v3 = v; value_3.write(hdr.top.index, v);
        value_4.read(v, hdr.top.index); v = v + hdr.values.v4; hdr.values.v4 = v; value_4.write(hdr.top.index, v);
        value_5.read(v, hdr.top.index); v = v + hdr.values.v5; hdr.values.v5 = v; value_5.write(hdr.top.index, v);
        value_6.read(v, hdr.top.index); v = v + hdr.values.v6; hdr.values.v6 = v; value_6.write(hdr.top.index, v);
        value_7.read(v, hdr.top.index); v = v + hdr.values.v7; hdr.values.v7 = v; value_7.write(hdr.top.index, v);
        value_8.read(v, hdr.top.index); v = v + hdr.values.v8; hdr.values.v8 = v; value_8.write(hdr.top.index, v);
        value_9.read(v, hdr.top.index); v = v + hdr.values.v9; hdr.values.v9 = v; value_9.write(hdr.top.index, v);
        value_10.read(v, hdr.top.index); v = v + hdr.values.v10; hdr.values.v10 = v; value_10.write(hdr.top.index, v);
        value_11.read(v, hdr.top.index); v = v + hdr.values.v11; hdr.values.v11 = v; value_11.write(hdr.top.index, v);
        value_12.read(v, hdr.top.index); v = v + hdr.values.v12; hdr.values.v12 = v; value_12.write(hdr.top.index, v);
        value_13.read(v, hdr.top.index); v = v + hdr.values.v13; hdr.values.v13 = v; value_13.write(hdr.top.index, v);
        value_14.read(v, hdr.top.index); v = v + hdr.values.v14; hdr.values.v14 = v; value_14.write(hdr.top.index, v);
        value_15.read(v, hdr.top.index); v = v + hdr.values.v15; hdr.values.v15 = v; value_15.write(hdr.top.index, v);
    }
    action put() {
        bit<32> v;
        value_0.read(v, hdr.top.index); v = hdr.values.v0; value_0.write(hdr.top.index, v);
        value_1.read(v, hdr.top.index); v = hdr.values.v1; value_1.write(hdr.top.index, v);
        value_2.read(v, hdr.top.index); v = hdr.values.v2; value_2.write(hdr.top.index, v);
        value_3.read(v, hdr.top.index); v = hdr.values.v3; value_3.write(hdr.top.index, v);
        value_4.read(v, hdr.top.index); v = hdr.values.v4; value_4.write(hdr.top.index, v);
        value_5.read(v, hdr.top.index); v = hdr.values.v5; value_5.write(hdr.top.index, v);
        value_6.read(v, hdr.top.index); v = hdr.values.v6; value_6.write(hdr.top.index, v);
        value_7.read(v, hdr.top.index); v = hdr.values.v7; value_7.write(hdr.top.index, v);
        value_8.read(v, hdr.top.index); v = hdr.values.v8; value_8.write(hdr.top.index, v);
        value_9.read(v, hdr.top.index); v = hdr.values.v9; value_9.write(hdr.top.index, v);
        value_10.read(v, hdr.top.index); v = hdr.values.v10; value_10.write(hdr.top.index, v);
        value_11.read(v, hdr.top.index); v = hdr.values.v11; value_11.write(hdr.top.index, v);
        value_12.read(v, hdr.top.index); v = hdr.values.v12; value_12.write(hdr.top.index, v);
        value_13.read(v, hdr.top.index); v = hdr.values.v13; value_13.write(hdr.top.index, v);
        value_14.read(v, hdr.top.index); v = hdr.values.v14; value_14.write(hdr.top.index, v);
        value_15.read(v, hdr.top.index); v = hdr.values.v15; value_15.write(hdr.top.index, v);
    }
    action biggest() {
        bit<32> v;
        value_0.read(v, hdr.top.index); if (hdr.values.v0 > v) { v = hdr.values.v0; } hdr.values.v0 = v; value_0.write(hdr.top.index, v);
        value_1.read(v, hdr.top.index); if (hdr.values.v1 > v) { v = hdr.values.v1; } hdr.values.v1 = v; value_1.write(hdr.top.index, v);
        value_2.read(v, hdr.top.index); if (hdr.values.v2 > v) { v = hdr.values.v2; } hdr.values.v2 = v; value_2.write(hdr.top.index, v);
        value_3.read(v, hdr.top.index); if (hdr.values.v3 > v) { v = hdr.values.v3; } hdr.values.v3 = v; value_3.write(hdr.top.index, v);
        value_4.read(v, hdr.top.index); if (hdr.values.v4 > v) { v = hdr.values.v4; } hdr.values.v4 = v; value_4.write(hdr.top.index, v);
        value_5.read(v, hdr.top.index); if (hdr.values.v5 > v) { v = hdr.values.v5; } hdr.values.v5 = v; value_5.write(hdr.top.index, v);
        value_6.read(v, hdr.top.index); if (hdr.values.v6 > v) { v = hdr.values.v6; } hdr.values.v6 = v; value_6.write(hdr.top.index, v);
        value_7.read(v, hdr.top.index); if (hdr.values.v7 > v) { v = hdr.values.v7; } hdr.values.v7 = v; value_7.write(hdr.top.index, v);
        value_8.read(v, hdr.top.index); if (hdr.values.v8 > v) { v = hdr.values.v8; } hdr.values.v8 = v; value_8.write(hdr.top.index, v);
        value_9.read(v, hdr.top.index); if (hdr.values.v9 > v) { v = hdr.values.v9; } hdr.values.v9 = v; value_9.write(hdr.top.index, v);
        value_10.read(v, hdr.top.index); if (hdr.values.v10 > v) { v = hdr.values.v10; } hdr.values.v10 = v; value_10.write(hdr.top.index, v);
        value_11.read(v, hdr.top.index); if (hdr.values.v11 > v) { v = hdr.values.v11; } hdr.values.v11 = v; value_11.write(hdr.top.index, v);
        value_12.read(v, hdr.top.index); if (hdr.values.v12 > v) { v = hdr.values.v12; } hdr.values.v12 = v; value_12.write(hdr.top.index, v);
        value_13.read(v, hdr.top.index); if (hdr.values.v13 > v) { v = hdr.values.v13; } hdr.values.v13 = v; value_13.write(hdr.top.index, v);
        value_14.read(v, hdr.top.index); if (hdr.values.v14 > v) { v = hdr.values.v14; } hdr.values.v14 = v; value_14.write(hdr.top.index, v);
        value_15.read(v, hdr.top.index); if (hdr.values.v15 > v) { v = hdr.values.v15; } hdr.values.v15 = v; value_15.write(hdr.top.index, v);
    }
    action round() { rounds.read(hdr.top.before, hdr.top.index); rounds.write(hdr.top.index, hdr.top.before + 1); }
    action little() { bit<5> x; small.read(x, hdr.top.index); small.write(hdr.top.index, x + 9); hdr.top.before = (bit<32>)x; }
    apply {
        sm.egress_spec = 1;
        ops.count((bit<32>)hdr.top.op);
        if (hdr.top.op == 0) { put(); round(); }
        else if (hdr.top.op == 1) { add(); round(); }
        else if (hdr.top.op == 2) { biggest(); }
        else if (hdr.top.op == 3) { little(); }
    }
}
control MyEgress(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) { apply { } }
control NoVerify(inout headers_t hdr, inout meta_t meta) { apply { } }
control NoUpdate(inout headers_t hdr, inout meta_t meta) { apply { } }
control Emit(packet_out pkt, in headers_t hdr) { apply { pkt.emit(hdr); } }
V1Switch(Parse(), NoVerify(), MyIngress(), MyEgress(), NoUpdate(), Emit()) main;
