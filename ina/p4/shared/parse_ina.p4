// Parser states behind IPv4, the same on every target: included inside the parser.

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
            default: accept;
        }
    }

    state parse_values {
        packet.extract(hdr.values);
        transition accept;
    }
