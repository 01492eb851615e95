// Forwarding: what is not INA crosses the switch as it would cross any other (L2, and L3 for frames
// that are addressed to the switch as a router).

#ifndef INA_FORWARDING_P4
#define INA_FORWARDING_P4

control Forwarding(inout headers_t hdr, inout ina_metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) dmac_counter;
    direct_counter(CounterType.packets_and_bytes) ipv4_lpm_counter;

    action drop() { mark_to_drop(standard_metadata); }
    action forward(bit<9> port) { standard_metadata.egress_spec = port; }
    action send_to_controller() { standard_metadata.egress_spec = CPU_PORT; }

    // To every port of the group but the one it came from (see Flood in pool.p4's egress).
    action flood(bit<16> group) { standard_metadata.mcast_grp = group; }

    action route(bit<9> port, bit<48> src_mac, bit<48> dst_mac) {
        standard_metadata.egress_spec = port;
        hdr.ethernet.src_mac = src_mac;
        hdr.ethernet.dst_mac = dst_mac;
    }

    // Frames to these addresses are routed, all others switched.
    table router_macs {
        key = { hdr.ethernet.dst_mac: exact @name("dst_mac"); }
        actions = { NoAction; }
        const default_action = NoAction;
        size = 64;
    }

    table ipv4_lpm {
        key = { hdr.ipv4.dst_addr: lpm @name("dst_addr"); }
        actions = { route; send_to_controller; drop; }
        default_action = drop();
        counters = ipv4_lpm_counter;
        size = 4096;
    }

    // The default is the controller's choice: flood(group) makes a learning-free switch.
    table dmac {
        key = { hdr.ethernet.dst_mac: exact @name("dst_mac"); }
        actions = { forward; flood; send_to_controller; drop; }
        default_action = drop();
        counters = dmac_counter;
        size = 4096;
    }

    apply {
        if (hdr.packet_out.isValid()) {
            standard_metadata.egress_spec = hdr.packet_out.egress_port;
            hdr.packet_out.setInvalid();
        } else if (hdr.ethernet.isValid()) {
            if (hdr.ipv4.isValid() && router_macs.apply().hit) {
                if (hdr.ipv4.version != 4 || hdr.ipv4.ihl < 5 || hdr.ipv4.ttl < 2 ||
                    standard_metadata.checksum_error == 1) {
                    drop();
                } else if (ipv4_lpm.apply().hit) {
                    bit<16> word_before = hdr.ipv4.ttl ++ hdr.ipv4.protocol;
                    hdr.ipv4.ttl = hdr.ipv4.ttl - 1;
                    hdr.ipv4.checksum = checksum_after(hdr.ipv4.checksum, word_before,
                                                       hdr.ipv4.ttl ++ hdr.ipv4.protocol);
                }
            } else {
                dmac.apply();
            }
        } else {
            drop();
        }
    }
}

#endif // INA_FORWARDING_P4
