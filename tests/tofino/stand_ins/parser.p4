// In place of tofino/parser.p4: its states on v1model, which clears metadata itself and has checksums
// beside the parser.

#ifndef EMULATED_PARSER_P4
#define EMULATED_PARSER_P4

struct all_metadata_t {
    ina_metadata_t    ingress;
    egress_metadata_t egress;
    bit<1>            is_result; // what leaves is a new packet
}

parser PoolParser(packet_in packet, out headers_t hdr, inout all_metadata_t all,
                  inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
#if __TARGET_TOFINO__ == 1
            RECIRCULATION_PORT: parse_harvest;
#endif
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

#if __TARGET_TOFINO__ == 1
    state parse_harvest {
        packet.extract(hdr.bridge);
        all.ingress.harvest = 1;
        all.ingress.sender = SENDER_CHILD;
        all.ingress.worker_bit = hdr.bridge.worker_bit;
        transition parse_ethernet;
    }
#endif

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept;
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.fragment_offset, hdr.ipv4.protocol) {
            (4, 5, 0, IP_PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

#include "../ina/p4/shared/parse_ina.p4"
}

#define IPV4_SUM                                                              \
    { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,            \
      hdr.ipv4.total_bytes, hdr.ipv4.identification, hdr.ipv4.reserved,       \
      hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments,                        \
      hdr.ipv4.fragment_offset, hdr.ipv4.ttl, hdr.ipv4.protocol,              \
      hdr.ipv4.src_addr, hdr.ipv4.dst_addr }

control PoolVerifyChecksum(inout headers_t hdr, inout all_metadata_t all) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.version == 4 && hdr.ipv4.ihl == 5, IPV4_SUM,
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control PoolComputeChecksum(inout headers_t hdr, inout all_metadata_t all) {
    apply {
        update_checksum(all.is_result == 1, IPV4_SUM, hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

control PoolDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.bridge); // valid on the way to the second pass alone
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
        packet.emit(hdr.ina);
        packet.emit(hdr.values);
    }
}

#endif // EMULATED_PARSER_P4
