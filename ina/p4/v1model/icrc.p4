// RoCEv2's invariant CRC (InfiniBand Architecture Specification, volume 1, section 7.8.1, annex A17):
// CRC-32 of 8 bytes of ones, and of the packet from the IPv4 header to the last value with ones for what
// switches may change. Admission compares it, egress makes that of what leaves, after all else is there.

#ifndef INA_ICRC_P4
#define INA_ICRC_P4

#define ICRC_HEADERS                                                                            \
    64w0xFFFFFFFFFFFFFFFF, hdr.ipv4.version, hdr.ipv4.ihl, 8w0xFF, hdr.ipv4.total_bytes,         \
    hdr.ipv4.identification, hdr.ipv4.reserved, hdr.ipv4.dont_fragment,                         \
    hdr.ipv4.more_fragments, hdr.ipv4.fragment_offset, 8w0xFF, hdr.ipv4.protocol, 16w0xFFFF,     \
    hdr.ipv4.src_addr, hdr.ipv4.dst_addr, hdr.udp.src_port, hdr.udp.dst_port,                   \
    hdr.udp.length_bytes, 16w0xFFFF, hdr.bth.opcode, hdr.bth.solicited, hdr.bth.migrated,       \
    hdr.bth.pad_bytes, hdr.bth.version, hdr.bth.pkey, 8w0xFF, hdr.bth.dest_qp,                  \
    hdr.bth.ack_request, hdr.bth.reserved, hdr.bth.psn, hdr.ina

control Icrc(inout headers_t hdr, inout ina_metadata_t meta) {
    action with_values() {
        hash(meta.icrc, HashAlgorithm.crc32, 32w0, { ICRC_HEADERS, hdr.values }, 64w0x100000000);
    }
    action without_values() {
        hash(meta.icrc, HashAlgorithm.crc32, 32w0, { ICRC_HEADERS }, 64w0x100000000);
    }

    apply {
        if (hdr.values.isValid()) {
            with_values();
        } else {
            without_values();
        }
        meta.icrc = meta.icrc[7:0] ++ meta.icrc[15:8] ++ meta.icrc[23:16] ++ meta.icrc[31:24];
    }
}

#endif // INA_ICRC_P4
