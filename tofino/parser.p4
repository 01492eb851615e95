// Parsers, deparsers, IPv4 header checksum.

#ifndef INA_TOFINO_PARSER_P4
#define INA_TOFINO_PARSER_P4

parser PoolParser(packet_in packet, out headers_t hdr, out ina_metadata_t meta,
                  out ingress_intrinsic_metadata_t ig_intr_md) {
    Checksum() ipv4_checksum;

    state start {
        packet.extract(ig_intr_md);
        packet.advance(PORT_METADATA_SIZE);
        meta.is_ours = 0;
        meta.is_inner = 0;
        meta.formed = 0;
        meta.known = 0;
        meta.sender = SENDER_UNKNOWN;
        meta.harvest = 0;
        meta.blank = 0;
        meta.checksum_error = false;
        meta.slot_room = 0;
        meta.access = ACCESS_REFUSED;
        meta.before = 0;
        meta.bitmap = 0;
        meta.missing = 0;
        meta.worker_bit = 0;
#ifdef MODE_SHARED
        meta.is_shared = 0;
        meta.is_resend = 0;
        meta.standing = 0;
#if __TARGET_TOFINO__ != 1
        meta.lane = 0;
        meta.claimable = 0;
        meta.lane_room = 0;
#endif
#endif
        transition select(ig_intr_md.ingress_port) {
#if __TARGET_TOFINO__ == 1
            RECIRCULATION_PORT &&& PORT_WITHIN_PIPE: parse_harvest;
#endif
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

#if __TARGET_TOFINO__ == 1
    state parse_harvest {
        packet.extract(hdr.bridge);
        meta.harvest = 1;
        meta.sender = SENDER_CHILD;
        meta.worker_bit = hdr.bridge.worker_bit;
        transition parse_ethernet;
    }
#endif

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept; // the frame behind it is payload
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: which_ipv4;
            default: accept;
        }
    }

    // A header with options is not ours to judge.
    state which_ipv4 {
        transition select(packet.lookahead<bit<8>>()) {
            0x45: parse_ipv4;
            default: parse_other_ipv4;
        }
    }

    state parse_other_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        ipv4_checksum.add(hdr.ipv4);
        meta.checksum_error = ipv4_checksum.verify();
        transition select(hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (0, IP_PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

#include "../ina/p4/shared/parse_ina.p4"
}

control PoolIngressDeparser(packet_out packet, inout headers_t hdr, in ina_metadata_t meta,
                            in ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md) {
    apply {
        packet.emit(hdr); // in the order of headers_t; CPU headers are never valid here
    }
}

parser PoolEgressParser(packet_in packet, out headers_t hdr, out egress_metadata_t meta,
                        out egress_intrinsic_metadata_t eg_intr_md) {
    state start {
        packet.extract(eg_intr_md);
        packet.extract(hdr.bridge);
        meta.queue_cells = 0;
        meta.threshold = 0;
        meta.excess = 0;
        transition select(hdr.bridge.pass) {
            PASS_ORDINARY: parse_ordinary;
            PASS_RESULT: parse_result;
            PASS_SUM: parse_result;
#ifdef MODE_SHARED
            PASS_UP: parse_result;
#endif
            default: accept; // to the recirculation port, as it is
        }
    }

    state parse_ordinary {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ordinary_ipv4;
            default: accept;
        }
    }

    state parse_ordinary_ipv4 {
        packet.extract(hdr.ipv4);
        transition accept;
    }

    // The values stay behind what is parsed.
    state parse_result {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        packet.extract(hdr.udp);
        packet.extract(hdr.ina);
        transition accept;
    }
}

control PoolEgressDeparser(packet_out packet, inout headers_t hdr, in egress_metadata_t meta,
                           in egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    Checksum() ipv4_checksum;

    apply {
        // Results are new packets: their header is summed anew.
        if (hdr.ina.isValid()) {
            hdr.ipv4.checksum = ipv4_checksum.update({
                hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,
                hdr.ipv4.total_bytes, hdr.ipv4.identification,
                hdr.ipv4.reserved, hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments,
                hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,
                hdr.ipv4.src_addr, hdr.ipv4.dst_addr});
        }
        packet.emit(hdr.bridge);
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.ina);
    }
}

#endif // INA_TOFINO_PARSER_P4
