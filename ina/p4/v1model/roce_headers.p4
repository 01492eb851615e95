// RoCEv2's headers around ina's: the base transport header behind UDP, the invariant CRC at the end.
// Sources: InfiniBand Architecture Specification, volume 1, sections 9.2 and 7.8.1, and annex A17.

#ifndef INA_ROCE_HEADERS_P4
#define INA_ROCE_HEADERS_P4

const bit<16> ROCE_UDP_PORT = 4791;
const bit<16> BTH_BYTES = 12;
const bit<16> ICRC_BYTES = 4;
const bit<16> BTH_PKEY = 0xFFFF; // the partition that all are in
const bit<8> INA_DROP_ICRC = 8;  // behind those that all programs count
const bit<32> ROCE_DROP_REASONS = 9;

// Padding and immediate data have no use here; SEND_*: of the program's kind of connections.
#define NOT_A_SEND                                                                       \
    || !hdr.icrc.isValid() || hdr.bth.pad_bytes != 0 || hdr.bth.version != 0             \
    || hdr.bth.pkey != BTH_PKEY                                                          \
    || (hdr.bth.opcode != SEND_ONLY && hdr.bth.opcode != SEND_FIRST                      \
        && hdr.bth.opcode != SEND_MIDDLE && hdr.bth.opcode != SEND_LAST)

// What ICRC covers of the IP header is always the same of one receiver: who gets it from a UDP socket does
// not see that header. An identification says nothing of what is never cut (RFC 6864).
#define SAME_IPV4                                                                        \
    hdr.ipv4.identification = 0;                                                         \
    hdr.ipv4.reserved = 0;                                                               \
    hdr.ipv4.dont_fragment = 1;                                                          \
    hdr.ipv4.fragment_offset = 0;

header bth_h {
    bit<8>  opcode;
    bit<1>  solicited;
    bit<1>  migrated;
    bit<2>  pad_bytes;
    bit<4>  version;
    bit<16> pkey;
    bit<8>  congestion; // FECN, BECN, reserved: what ICRC leaves out
    bit<24> dest_qp;
    bit<1>  ack_request;
    bit<7>  reserved;
    bit<24> psn;
}

header icrc_h {
    bit<32> crc; // low byte first
}

#endif // INA_ROCE_HEADERS_P4
