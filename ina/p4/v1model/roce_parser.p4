// Parser states behind IPv4 of a program that speaks RoCEv2, in place of shared/parse_ina.p4.

    state parse_udp {
        packet.extract(hdr.udp);
        transition select(hdr.udp.dst_port) {
            ROCE_UDP_PORT: parse_bth;
            default: accept;
        }
    }

    // A packet that ends early leaves the header that it lacks invalid: Admission counts it.
    state parse_bth {
        packet.extract(hdr.bth);
        transition parse_ina;
    }

    state parse_ina {
        packet.extract(hdr.ina);
        transition select(hdr.ina.value_count) {
            VALUES_PER_PACKET: parse_values;
            default: parse_icrc;
        }
    }

    state parse_values {
        packet.extract(hdr.values);
        transition parse_icrc;
    }

    state parse_icrc {
        packet.extract(hdr.icrc);
        transition accept;
    }
