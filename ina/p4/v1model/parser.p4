// Parser, deparser, IPv4 header checksum.

#ifndef INA_PARSER_P4
#define INA_PARSER_P4

parser PoolParser(packet_in packet, out headers_t hdr, inout ina_metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    state start {
        transition select(standard_metadata.ingress_port) {
            CPU_PORT: parse_packet_out;
            default: parse_ethernet;
        }
    }

    state parse_packet_out {
        packet.extract(hdr.packet_out);
        transition accept; // the frame behind it leaves as it is
    }

    state parse_ethernet {
        packet.extract(hdr.ethernet);
        transition select(hdr.ethernet.ethertype) {
            ETHERTYPE_IPV4: parse_ipv4;
            default: accept;
        }
    }

    // Options and fragments but the first have no UDP header where we look: ordinary traffic.
    state parse_ipv4 {
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.fragment_offset,
                          hdr.ipv4.protocol) {
            (4, 5, 0, IP_PROTOCOL_UDP): parse_udp;
            default: accept;
        }
    }

#ifdef MODE_STREAM
#include "parse_stream.p4"
#elif defined(ENCAP_ROCE)
#include "roce_parser.p4"
#else
#include "../shared/parse_ina.p4"
#endif
}

control PoolDeparser(packet_out packet, in headers_t hdr) {
    apply {
        packet.emit(hdr.packet_in);
        packet.emit(hdr.ethernet);
        packet.emit(hdr.ipv4);
        packet.emit(hdr.udp);
#ifdef ENCAP_ROCE
        packet.emit(hdr.bth);
#endif
        packet.emit(hdr.ina);
        packet.emit(hdr.values);
#ifdef MODE_STREAM
        packet.emit(hdr.next_block);
#endif
#ifdef ENCAP_ROCE
        packet.emit(hdr.icrc);
#endif
    }
}

#define IPV4_CHECKSUM_FIELDS                                                       \
    { hdr.ipv4.version, hdr.ipv4.ihl, hdr.ipv4.dscp, hdr.ipv4.ecn,                 \
      hdr.ipv4.total_bytes, hdr.ipv4.identification, hdr.ipv4.reserved,            \
      hdr.ipv4.dont_fragment, hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset,   \
      hdr.ipv4.ttl, hdr.ipv4.protocol, hdr.ipv4.src_addr, hdr.ipv4.dst_addr }

// A header with options is not ours to judge; what we change in one, we change in its checksum
// (checksum_after).
control PoolVerifyChecksum(inout headers_t hdr, inout ina_metadata_t meta) {
    apply {
        verify_checksum(hdr.ipv4.isValid() && hdr.ipv4.ihl == 5, IPV4_CHECKSUM_FIELDS,
                        hdr.ipv4.checksum, HashAlgorithm.csum16);
    }
}

// The checksum after one 16-bit word of the header changed (RFC 1624, equation 3).
bit<16> checksum_after(in bit<16> checksum, in bit<16> word_before, in bit<16> word_after) {
    bit<32> sum = (bit<32>)(~checksum) + (bit<32>)(~word_before) + (bit<32>)word_after;
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16); // the carry of the carry
    return ~((bit<16>)sum);
}

// What we send is a new packet: its header is summed anew.
control PoolComputeChecksum(inout headers_t hdr, inout ina_metadata_t meta) {
    apply {
        update_checksum(meta.is_ours == 1, IPV4_CHECKSUM_FIELDS, hdr.ipv4.checksum,
                        HashAlgorithm.csum16);
    }
}

#endif // INA_PARSER_P4
