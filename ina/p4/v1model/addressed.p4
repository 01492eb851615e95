// Addressed: whether a packet is for this switch. One that sums nothing for a job forwards its packets
// as it does any others, so several switches may lie between a worker and the one that it sends to.

#ifndef INA_ADDRESSED_P4
#define INA_ADDRESSED_P4

control Addressed(inout headers_t hdr, inout ina_metadata_t meta) {
    action ours() { meta.is_ours = 1; }

    // As compiled there is none: the switch is an ordinary one until the controller has spoken.
    table own_addresses {
        key = { hdr.ipv4.dst_addr: exact @name("dst_addr"); }
        actions = { ours; @defaultonly NoAction; }
        const default_action = NoAction();
        size = OWN_ADDRESSES_TOTAL;
    }

    apply {
        if (hdr.udp.isValid() && hdr.udp.dst_port == INA_UDP_PORT) {
            own_addresses.apply();
        }
    }
}

#endif // INA_ADDRESSED_P4
