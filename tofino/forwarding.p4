// Forwarding: what is not INA crosses the switch as it would cross any other (L2, and L3 for frames
// that are addressed to the switch as a router).

#ifndef INA_TOFINO_FORWARDING_P4
#define INA_TOFINO_FORWARDING_P4

control Forwarding(inout headers_t hdr, inout ina_metadata_t meta,
                   inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                   inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    // No direct counters here, as v1model's twin has: one would have to count in every action of its
    // table, and both tables use `drop` and `send_to_controller`.
    action forward(bit<9> port) {
        ig_tm_md.ucast_egress_port = port;
    }
    // To every port of the group but the one it came from (see PoolEgress).
    action flood(bit<16> group) {
        ig_tm_md.mcast_grp_a = group;
    }
    action send_to_controller() { ig_tm_md.ucast_egress_port = CPU_PORT; }
    action drop() { ig_dprsr_md.drop_ctl = 1; }

    action route(bit<9> port, bit<48> src_mac, bit<48> dst_mac) {
        hdr.ethernet.src_mac = src_mac;
        hdr.ethernet.dst_mac = dst_mac;
        ig_tm_md.ucast_egress_port = port;
    }

    action to_router() { meta.known = 1; }

    table router_macs {
        key = { hdr.ethernet.dst_mac: exact @name("dst_mac"); }
        actions = { NoAction; }
        const default_action = NoAction();
        size = 64;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { drop; route; send_to_controller; }
        size = 4096;
        default_action = drop();
    }

    table dmac {
        key = { hdr.ethernet.dst_mac: exact @name("dst_mac"); }
        actions = { forward; flood; send_to_controller; drop; }
        default_action = drop();
        size = 4096;
    }

    // The header checksum after TTL - 1 (RFC 1624, equation 3): + 0x0100, and the carry round the end.
    action carry_none() {
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        hdr.ipv4.checksum = hdr.ipv4.checksum + 0x0100;
    }
    action carry_one() {
        hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
        hdr.ipv4.checksum = hdr.ipv4.checksum + 0x0101;
    }
    table checksum_of_ttl {
        key = { hdr.ipv4.checksum: ternary @name("checksum"); }
        actions = { carry_none; carry_one; }
        const entries = {
            0xFEFF: carry_one();
            0xFF00 &&& 0xFF00: carry_one();
        }
        size = 2;
        const default_action = carry_none();
    }

    apply {
        if (hdr.packet_out.isValid()) {
            ig_tm_md.ucast_egress_port = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.ethernet.isValid()) {
            if (hdr.ipv4.isValid()) {
                if (router_macs.apply().hit) {
                    to_router();
                }
            }
            if (meta.known == 0) {
                dmac.apply();
            } else if (hdr.ipv4.version != 4 || hdr.ipv4.ihl < 5 || hdr.ipv4.ttl < 2
                       || meta.checksum_error) {
                drop();
            } else if (ipv4_lpm.apply().hit) {
                checksum_of_ttl.apply();
            }
        } else {
            drop(); // not even an Ethernet header
        }
    }
}

#endif // INA_TOFINO_FORWARDING_P4
