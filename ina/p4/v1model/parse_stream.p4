// Parser states behind IPv4 of a program with mode `stream`, in place of shared/parse_ina.p4: a packet may
// have its last word alone.

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            INA_UDP_PORT: parse_ina;
            default: accept;
        }
    }

    // A packet that ends early leaves the header that it lacks invalid: Admission counts it.
    state parse_ina {
        packet.extract(hdr.ina);
        transition select(hdr.ina.value_count) {
            VALUES_PER_PACKET: parse_values;
            1: parse_next_block;
            default: accept;
        }
    }

    state parse_values {
        packet.extract(hdr.values);
        transition accept;
    }

    state parse_next_block {
        packet.extract(hdr.next_block);
        transition accept;
    }
