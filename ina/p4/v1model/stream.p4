// Mode `stream` on v1model: OmniReduce's lanes of blocks that are not zero. As mode `pool`, whose jobs it
// sums, too; but the last word of a packet says which block its sender has next, the slot keeps the least of
// them, and a worker whose block is zero sends that word alone (docs/protocol.md, "Streams of blocks").
//
// This file is the pipeline's diagram. Its controls are called as those of pool.p4, since a controller
// writes the same tables in both. Build: ina p4 compile --mode stream --values 64|256|360|1024.

#define MODE_STREAM

#include <core.p4>
#include <v1model.p4>

#include "headers.p4"
#include "shim.p4"
#include "parser.p4"

#include "forwarding.p4"
#include "admission.p4"
#include "../shared/slots.p4"
#include "../shared/contribution.p4"
#include "expand.p4"
#include "../shared/accumulate.p4"
#include "distribute.p4"
#include "mark.p4"

control PoolIngress(inout headers_t hdr, inout ina_metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    Forwarding() forwarding;
    Admission() admission;
    Slots() slots;
    Contribution() contribution;
    Expand() expand;
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
        if (hdr.udp.isValid() && hdr.udp.dst_port == INA_UDP_PORT) {
            if (own_addresses.apply().hit) {
                admission.apply(hdr, meta, standard_metadata);
                if (meta.access == ACCESS_STALE) { // a contribution; nothing is known of its slot yet
                    slots.apply(hdr, meta);
                    if (meta.bitmap != 0) { // not stale
                        contribution.apply(hdr, meta);
                        expand.apply(hdr, meta);
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
    }
}

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define BUILD_(values) stream_v1model_##values
#define BUILD(values) BUILD_(values)

@pkginfo(name=TEXT(BUILD(VALUES_PER_PACKET)), version="1")
V1Switch(PoolParser(), PoolVerifyChecksum(), PoolIngress(), PoolEgress(), PoolComputeChecksum(),
         PoolDeparser()) main;
