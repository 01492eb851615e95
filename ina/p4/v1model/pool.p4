// Mode `pool` on v1model: a job owns a range of slots, and a sum is complete when every child is in it:
// the job's workers, or switches that sum for it. A switch with a parent sends its sums up.
//
// This file is the pipeline's diagram. Build: ina p4 compile --values 64|256|360|1024.

#include <core.p4>
#include <v1model.p4>

#include "headers.p4"
#include "shim.p4"
#include "parser.p4"

#include "addressed.p4"
#include "forwarding.p4"
#include "admission.p4"
#include "../shared/slots.p4"
#include "../shared/contribution.p4"
#include "../shared/accumulate.p4"
#include "distribute.p4"
#include "mark.p4"

control PoolIngress(inout headers_t hdr, inout ina_metadata_t meta,
                    inout standard_metadata_t standard_metadata) {
    Addressed() addressed;
    Forwarding() forwarding;
    Admission() admission;
    Slots() slots;
    Contribution() contribution;
    Accumulate() accumulate;
    Distribute() distribute;

    apply {
        addressed.apply(hdr, meta);
        if (meta.is_ours == 1) {
            admission.apply(hdr, meta, standard_metadata);
            if (meta.access == ACCESS_STALE) { // a contribution; nothing is known of its slot yet
                slots.apply(hdr, meta);
                if (meta.bitmap != 0) { // not stale
                    contribution.apply(hdr, meta);
                    accumulate.apply(hdr, meta);
                }
            }
            distribute.apply(hdr, meta, standard_metadata);
        } else {
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
#define BUILD_(values) pool_v1model_##values
#define BUILD(values) BUILD_(values)

@pkginfo(name=TEXT(BUILD(VALUES_PER_PACKET)), version="1")
V1Switch(PoolParser(), PoolVerifyChecksum(), PoolIngress(), PoolEgress(), PoolComputeChecksum(),
         PoolDeparser()) main;
