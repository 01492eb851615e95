// What packets are in: nothing but UDP, to a port of the switch's.
//
// Each *_encap.p4 says the same of its own: the metadata that it needs; how a sender is known (SENDER_KEY in
// the table of members), what its row says besides (OF_SENDER, KEEP_OF_SENDER), and the port back to it;
// what is around ina's header and values (ENCAP_BYTES), and when that makes a packet malformed
// (NOT_IN_ENCAP); how a receiver is known (RECEIVER_KEY), and what a packet to it gets (ADDRESS_ACTION,
// between BEFORE_ADDRESS and AFTER_ADDRESS); whether rounds have other shapes than SUM (HAS_SHAPES).

#ifndef INA_UDP_ENCAP_P4
#define INA_UDP_ENCAP_P4

#define ENCAP_METADATA
#define HAS_SHAPES

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
// Of a copy that nobody there wants the values stay behind (docs/protocol.md, "Shapes"): bit s of strips_on says
// so of shape s where the chunk's owner is on the way to this receiver, bit s of strips_off where it is not.
// way, way_mask: how the paths of those begin, in the lower bits of `path`.
#define ADDRESS_ACTION                                                             \
    bit<4> strips;                                                                 \
    action address(bit<48> dst_mac, bit<32> dst_addr, bit<16> dst_port,            \
                   bit<24> way, bit<24> way_mask, bit<4> strips_on,                \
                   bit<4> strips_off) {                                            \
        hdr.ethernet.src_mac = hdr.ethernet.dst_mac;                               \
        hdr.ethernet.dst_mac = dst_mac;                                            \
        hdr.ipv4.src_addr = hdr.ipv4.dst_addr;                                     \
        hdr.ipv4.dst_addr = dst_addr;                                              \
        hdr.ipv4.ttl = 64;                                                         \
        hdr.udp.src_port = INA_UDP_PORT;                                           \
        hdr.udp.dst_port = dst_port;                                               \
        hdr.udp.checksum = 0;                                                      \
        strips = (hdr.ina.path & way_mask) == way ? strips_on : strips_off;        \
    }                                                                              \
    action strip() {                                                               \
        hdr.values.setInvalid();                                                   \
        hdr.ina.value_count = 0;                                                   \
        hdr.udp.length_bytes = EMPTY_UDP_BYTES;                                    \
        hdr.ipv4.total_bytes = EMPTY_IP_BYTES;                                     \
    }
#define BEFORE_ADDRESS strips = 0;
#define AFTER_ADDRESS                                                              \
    if (hdr.values.isValid() && (strips >> hdr.ina.shape)[0:0] == 1) {             \
        strip();                                                                   \
    }

#endif // INA_UDP_ENCAP_P4
