// Mode `transparent` on v1model: mode `pool` between RDMA adapters that know of no switch (NetReduce: Liu et al.,
// ASPLOS 2023). Each worker has a reliable connection to the next one of a ring and SENDs its values along
// it. The switch holds a chunk's packets back until all workers' are there, and then lets as many go, one on
// each connection, with the sum in place of what came. Acknowledgements, repetition and rates are between
// the adapters; what they send again is answered from the slot.
//
// If ever a worker's own packet got through, its neighbour's adapter would take it for the sum. So of RoCEv2,
// and of what may be that, nothing crosses this switch but what a row lets through: as compiled, nothing.
//
// This file is the pipeline's diagram. Its controls are called as those of pool.p4, since a controller
// writes the same tables in both. Build: ina p4 compile --mode transparent --values 56|248|1016.

#define ENCAP_RING
#define ENCAP_ROCE

#include <core.p4>
#include <v1model.p4>

#include "headers.p4"
#include "shim.p4"
#include "parser.p4"

#include "forwarding.p4"
#include "icrc.p4"
#include "admission.p4"
#include "../shared/slots.p4"
#include "../shared/contribution.p4"
#include "../shared/accumulate.p4"
#include "distribute.p4"
#include "mark.p4"

control PoolIngress(inout headers_t hdr, inout ina_metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;
    Admission() admission;
    Slots() slots;
    Contribution() contribution;
    Accumulate() accumulate;
    Distribute() distribute;

    // Networks of which workers have addresses in their rings, and nothing else has: what goes there by RoCEv2 is
    // summed, or a reply, or stays here.
    action ours() { meta.is_ours = 1; }
    table own_addresses {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { ours; @defaultonly NoAction; }
        const default_action = NoAction();
        size = OWN_ADDRESSES_TOTAL;
    }

    action pass() { meta.is_ours = 0; }
    action stop() {
        meta.is_ours = 1;
        meta.drop_reason = INA_DROP_MEMBER;
    }

    // What a worker says to the one before it, who has sent to it: as it came, but for its MAC addresses. It needs
    // no way of Forwarding's. job: whose row it is, for who reads it back.
    bit<1> is_reply = 0;
    action reply(bit<9> port, bit<48> src_mac, bit<48> dst_mac, bit<16> job) {
        pass();
        is_reply = 1;
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_mac = src_mac;
        hdr.ethernet.dst_mac = dst_mac;
        meta.job_index = job;
    }
    table replies {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
            hdr.ipv4.src_addr: exact @name("src_addr");
            hdr.ipv4.dst_addr: exact @name("dst_addr");
            hdr.bth.dest_qp: exact @name("dest_qp");
        }
        actions = { reply; @defaultonly stop; }
        const default_action = stop();
        size = MEMBERS_TOTAL;
    }

    // Networks that get other RoCEv2 traffic across this switch. None may have a ring's addresses in it: a switch
    // that has lost its power has no row, and it must not matter which comes first.
    table bystanders {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { pass; @defaultonly stop; }
        const default_action = stop();
        size = 1024;
    }

    apply {
        if (hdr.ethernet.isValid() && (hdr.ethernet.ethertype == ETHERTYPE_VLAN
                                       || hdr.ethernet.ethertype == ETHERTYPE_SERVICE_VLAN)) {
            stop(); // who looks behind tags may find RoCEv2
        } else if (hdr.ipv4.isValid() && hdr.ipv4.protocol == IP_PROTOCOL_UDP
                   // An unreadable port (behind options, of a later fragment) may be any.
                   && (!hdr.udp.isValid() || hdr.udp.dst_port == ROCE_UDP_PORT)) {
            if (!own_addresses.apply().hit) {
                bystanders.apply();
            } else if (hdr.bth.isValid() && (hdr.bth.opcode == ACKNOWLEDGE
                                             || hdr.bth.opcode == CONGESTION_NOTIFICATION)) {
                replies.apply();
            } else {
                admission.apply(hdr, meta, standard_metadata);
                if (meta.access == ACCESS_STALE) { // a contribution; nothing is known of its slot yet
                    slots.apply(hdr, meta);
                    if (meta.bitmap != 0) { // not stale
                        contribution.apply(hdr, meta);
                        accumulate.apply(hdr, meta);
                    }
                }
            }
        }
        if (meta.is_ours == 1) {
            distribute.apply(hdr, meta, standard_metadata);
        } else if (is_reply == 0) {
            forwarding.apply(hdr, meta, standard_metadata);
        }
    }
}

control PoolEgress(inout headers_t hdr, inout ina_metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    Address() address;
    Mark() mark;
    Icrc() icrc;

    apply {
        if (meta.is_ours == 1) {
            address.apply(hdr, meta, standard_metadata);
        } else if (standard_metadata.egress_port == CPU_PORT) {
            hdr.packet_in.setValid();
            hdr.packet_in.ingress_port = standard_metadata.ingress_port;
            hdr.packet_in.padding = 0;
        } else if (standard_metadata.egress_rid != 0
                   && standard_metadata.egress_port == standard_metadata.ingress_port) {
            mark_to_drop(standard_metadata); // a flood goes everywhere but back
        }
        mark.apply(hdr, meta, standard_metadata);
        if (meta.is_ours == 1) { // of the packet as it leaves
            icrc.apply(hdr, meta);
            hdr.icrc.crc = meta.icrc;
        }
    }
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define BUILD_(values) transparent_v1model_##values
#define BUILD(values) BUILD_(values)

@pkginfo(name=TEXT(BUILD(VALUES_PER_PACKET)), version="1")
V1Switch(PoolParser(), PoolVerifyChecksum(), PoolIngress(), PoolEgress(), PoolComputeChecksum(),
         PoolDeparser()) main;
