// What packets are in: nothing but UDP, to a port of the switch's.
//
// Each *_encap.p4 says the same of its own: the metadata that it needs; how a sender is known (SENDER_KEY in
// the table of members), what its row says besides (OF_SENDER, KEEP_OF_SENDER), and the port back to it;
// what is around ina's header and values (ENCAP_BYTES), and when that makes a packet malformed
// (NOT_IN_ENCAP); how a receiver is known (RECEIVER_KEY), and what a packet to it gets (ADDRESS_ACTION,
// between BEFORE_ADDRESS and AFTER_ADDRESS).

#ifndef INA_UDP_ENCAP_P4
#define INA_UDP_ENCAP_P4

#define ENCAP_METADATA

#define SENDER_KEY hdr.udp.src_port: exact @name("src_port");
#define OF_SENDER
#define AND_OF_SENDER
#define KEEP_OF_SENDER
#define PORT_OF_SENDER standard_metadata.ingress_port

#define ENCAP_BYTES 0
#define NOT_IN_ENCAP
#define DROP_REASONS INA_DROP_REASONS

#define RECEIVER_KEY
// What leaves comes from where the packet went: worker and switch talk as two sockets do.
// UDP checksum 0 (none, RFC 768): it covers the values, and a switch that adds in passing has not
// the whole payload at hand when it writes the header. Links check their frames.
#define ADDRESS_ACTION                                                             \
    action address(bit<48> dst_mac, bit<32> dst_addr, bit<16> dst_port) {          \
        hdr.ethernet.src_mac = hdr.ethernet.dst_mac;                               \
        hdr.ethernet.dst_mac = dst_mac;                                            \
        hdr.ipv4.src_addr = hdr.ipv4.dst_addr;                                     \
        hdr.ipv4.dst_addr = dst_addr;                                              \
        hdr.ipv4.ttl = 64;                                                         \
        hdr.udp.src_port = INA_UDP_PORT;                                           \
        hdr.udp.dst_port = dst_port;                                               \
        hdr.udp.checksum = 0;                                                      \
    }
#define BEFORE_ADDRESS
#define AFTER_ADDRESS

#endif // INA_UDP_ENCAP_P4
