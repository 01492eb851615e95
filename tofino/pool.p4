// Mode `pool` on Tofino: the controls of ../ina/p4/v1model/pool.p4, in the same order.
//
// 64 values a packet, on Tofino 1 and Tofino 2. (Tofino 2 has the stages for 128, but p4c 1.2.5.16 does
// not find room for them in its packet header vector.)

#include <core.p4>
#if __TARGET_TOFINO__ == 1
#include <tna.p4>
#else
#include <t2na.p4>
#endif

#include "headers.p4"
#include "shim.p4"
#include "parser.p4"

#include "forwarding.p4"
#include "admission.p4"
#include "../ina/p4/shared/slots.p4"
#include "../ina/p4/shared/contribution.p4"
#include "../ina/p4/shared/accumulate.p4"
#include "distribute.p4"
#include "mark.p4"

control PoolIngress(inout headers_t hdr, inout ina_metadata_t meta,
                    in ingress_intrinsic_metadata_t ig_intr_md,
                    in ingress_intrinsic_metadata_from_parser_t ig_prsr_md,
                    inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                    inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    Admission() admission;
    Slots() slots;
    Contribution() contribution;
    Accumulate() accumulate;
    Distribute() distribute;
    Forwarding() forwarding;

    // As on v1model. Forwarding must come after it, and Admission beside it in the first stage.
    action ours() { meta.is_ours = 1; }
    table own_addresses {
        key = { hdr.ipv4.dst_addr: exact @name("dst_addr"); }
        size = OWN_ADDRESSES_TOTAL;
        actions = { ours; @defaultonly NoAction; }
        const default_action = NoAction();
    }

    action come_first() {
        hdr.bridge.setValid();
        hdr.bridge.pass = PASS_ORDINARY;
        hdr.bridge.padding = 0;
        hdr.bridge.ingress_port = ig_intr_md.ingress_port;
    }

    apply {
        if (meta.harvest == 0) {
            come_first();
        }
        if (hdr.udp.isValid() && hdr.udp.dst_port == INA_UDP_PORT) {
            if (own_addresses.apply().hit) {
                admission.apply(hdr, meta, ig_intr_md, ig_prsr_md);
            }
        }
        if (meta.is_ours == 1) {
            if (IS_CONTRIBUTION(meta)) {
                slots.apply(hdr, meta);
                if (meta.bitmap != 0) {
                    contribution.apply(hdr, meta);
                }
            }
            // Does nothing for other packets: meta.access says so. Under a condition its stages would
            // have to come before those of Distribute.
            accumulate.apply(hdr, meta);
            distribute.apply(hdr, meta, ig_intr_md, ig_dprsr_md, ig_tm_md);
        } else {
            forwarding.apply(hdr, meta, ig_dprsr_md, ig_tm_md);
        }
    }
}

control PoolEgress(inout headers_t hdr, inout egress_metadata_t meta,
                   in egress_intrinsic_metadata_t eg_intr_md,
                   in egress_intrinsic_metadata_from_parser_t eg_prsr_md,
                   inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md,
                   inout egress_intrinsic_metadata_for_output_port_t eg_oport_md) {
    Address() address;
    Mark() mark;

    action to_controller() {
        hdr.packet_in.setValid();
        hdr.packet_in.padding = 0;
    }
    action say_port() { hdr.packet_in.ingress_port = hdr.bridge.ingress_port; }
    action prune() { eg_dprsr_md.drop_ctl = 1; } // a flood goes everywhere but back
    action came_by() { meta.way_back = hdr.bridge.ingress_port ^ eg_intr_md.egress_port; }
    action cross() { hdr.bridge.setInvalid(); }

    apply {
        if (hdr.bridge.pass != PASS_HARVEST_ALL && hdr.bridge.pass != PASS_HARVEST_ONE) {
            came_by();
            if (hdr.ina.isValid()) {
                address.apply(hdr, meta, eg_intr_md, eg_dprsr_md);
            } else if (eg_intr_md.egress_port == CPU_PORT) {
                to_controller();
                say_port();
            } else if (eg_intr_md.egress_rid != 0 && meta.way_back == 0) {
                prune();
            }
            mark.apply(hdr, meta, eg_intr_md);
            cross();
        }
    }
}

Pipeline(PoolParser(), PoolIngress(), PoolIngressDeparser(), PoolEgressParser(), PoolEgress(),
         PoolEgressDeparser()) pipe;

Switch(pipe) main;
