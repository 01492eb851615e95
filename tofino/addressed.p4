    // Addressed, included inside PoolIngress: whether a packet is for this switch.
    //
    // On v1model a control of this name says so in meta.is_ours, and Admission waits for it. Here both
    // must be in the first stage, so a hit leads straight to Admission, and the name of the control is in
    // those of the table and its action.

    @name("addressed.ours")
    action ours() { meta.is_ours = 1; }

    @name("addressed.own_addresses")
    table addressed {
        key = { hdr.ipv4.dst_addr: exact @name("dst_addr"); }
        size = OWN_ADDRESSES_TOTAL;
        actions = { ours; @defaultonly NoAction; }
        const default_action = NoAction();
    }
