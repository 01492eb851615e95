// In place of the pipeline at the end of tofino/pool.p4 and shared.p4: both of its controls between v1model's parser
// and deparser. What Tofino's hardware does with their metadata is done here.

const bit<9> NOWHERE = 511; // a packet that no control sends anywhere

control FrameIngress(inout headers_t hdr, inout all_metadata_t all,
                     inout standard_metadata_t standard_metadata) {
    PoolIngress() pool;

    apply {
        ingress_intrinsic_metadata_t came;
        ingress_intrinsic_metadata_from_parser_t parsed;
        ingress_intrinsic_metadata_for_deparser_t leave;
        ingress_intrinsic_metadata_for_tm_t way;
        came.ingress_port = standard_metadata.ingress_port;
        came.ingress_mac_tstamp = standard_metadata.ingress_global_timestamp << 8; // us, see OF_CLOCK
        parsed.unused = 0;
        leave.drop_ctl = 0;
        way.ucast_egress_port = NOWHERE;
        way.mcast_grp_a = 0;
        all.ingress.checksum_error = standard_metadata.checksum_error == 1;
        pool.apply(hdr, all.ingress, came, parsed, leave, way);
        // A port and a group would both get it on the chip; nobody here, so that a test sees it.
        if (leave.drop_ctl != 0 || (way.mcast_grp_a != 0 && way.ucast_egress_port != NOWHERE)) {
            mark_to_drop(standard_metadata);
        } else {
            standard_metadata.egress_spec = way.ucast_egress_port;
            standard_metadata.mcast_grp = way.mcast_grp_a;
        }
    }
}

control FrameEgress(inout headers_t hdr, inout all_metadata_t all,
                    inout standard_metadata_t standard_metadata) {
    PoolEgress() pool;

    apply {
        egress_intrinsic_metadata_t leaves;
        egress_intrinsic_metadata_from_parser_t parsed;
        egress_intrinsic_metadata_for_deparser_t leave;
        egress_intrinsic_metadata_for_output_port_t port;
        leaves.egress_port = standard_metadata.egress_port;
        leaves.egress_rid = standard_metadata.egress_rid;
        leaves.enq_qdepth = standard_metadata.enq_qdepth;
        parsed.unused = 0;
        leave.drop_ctl = 0;
        leave.mtu_trunc_len = 0;
        port.unused = 0;
        if (hdr.bridge.pass == PASS_RESULT || hdr.bridge.pass == PASS_SUM
            || hdr.bridge.pass == PASS_UP) {
            all.is_result = 1;
        }
        // The egress parser stops behind IPv4 where the packet is ordinary: what follows is payload.
        ina_h payload = hdr.ina;
        bool hidden = hdr.ina.isValid() && hdr.bridge.pass == PASS_ORDINARY;
        if (hidden) {
            hdr.ina.setInvalid();
        }
        pool.apply(hdr, all.egress, leaves, parsed, leave, port);
        if (hidden) {
            hdr.ina.setValid();
            hdr.ina = payload;
        }
        if (leave.drop_ctl != 0) {
            mark_to_drop(standard_metadata);
        } else if (leave.mtu_trunc_len != 0) {
            truncate((bit<32>)leave.mtu_trunc_len);
        }
    }
}

@pkginfo(name="emulated", version="1")
V1Switch(PoolParser(), PoolVerifyChecksum(), FrameIngress(), FrameEgress(), PoolComputeChecksum(),
         PoolDeparser()) main;
