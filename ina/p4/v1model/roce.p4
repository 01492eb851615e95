// Mode `roce` on v1model: mode `pool` behind RoCEv2. Contributions come as SENDs of InfiniBand's unreliable
// connections, and so do results leave; a sender is known by the queue pair that it sends to. Each packet has
// ina's header, so nothing is kept of a queue pair, and a result can write nowhere but into a buffer that its
// receiver has posted.
//
// This file is the pipeline's diagram. Its controls are called as those of pool.p4, since a controller
// writes the same tables in both. Build: ina p4 compile --mode roce --values 56|248|1016.

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

    // A switch sums what is for an address of its own. What is for another switch is ordinary traffic
    // to it, so that several may lie between a worker and the one that it sends to. As compiled there is
    // no such address: it is an ordinary switch until the controller has spoken.
    action ours() { meta.is_ours = 1; }
    table own_addresses {
        key = { hdr.ipv4.dst_addr: exact @name("dst_addr"); }
        actions = { ours; @defaultonly NoAction; }
        const default_action = NoAction();
        size = OWN_ADDRESSES_TOTAL;
    }

    apply {
        if (hdr.udp.isValid() && hdr.udp.dst_port == ROCE_UDP_PORT) {
            if (own_addresses.apply().hit) {
                admission.apply(hdr, meta, standard_metadata);
                if (meta.access == ACCESS_STALE) { // a contribution; nothing is known of its slot yet
                    slots.apply(hdr, meta);
                    if (meta.bitmap != 0) { // not stale
                        contribution.apply(hdr, meta);
                        accumulate.apply(hdr, meta);
                    }
                }
                distribute.apply(hdr, meta, standard_metadata);
            }
        }
        if (meta.is_ours == 0) {
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
#define BUILD_(values) roce_v1model_##values
#define BUILD(values) BUILD_(values)

@pkginfo(name=TEXT(BUILD(VALUES_PER_PACKET)), version="1")
V1Switch(PoolParser(), PoolVerifyChecksum(), PoolIngress(), PoolEgress(), PoolComputeChecksum(),
         PoolDeparser()) main;
