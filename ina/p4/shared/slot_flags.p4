// What a packet says besides its values that a slot gathers: for Slots, and for Claims.

#ifndef INA_SLOT_FLAGS_P4
#define INA_SLOT_FLAGS_P4

// The flags that a slot gathers; the others belong to one packet. Mode `pool` has no slot that another
// job could want.
#ifdef MODE_SHARED
#define STICKY_FLAGS (INA_FLAG_ECN | INA_FLAG_OVERFLOW | INA_FLAG_NON_FINITE | INA_FLAG_WANTED)
#else
#define STICKY_FLAGS (INA_FLAG_ECN | INA_FLAG_OVERFLOW | INA_FLAG_NON_FINITE)
#endif

// Sticky flags of this packet, for Contribution. A mark that a queue on the way left in the IP header
// counts too. Here, since they take Tofino two stages, as what else these controls do does.
#define SLOT_FLAGS_ACTIONS                                                \
    action own_flags() { meta.flags = hdr.ina.flags & STICKY_FLAGS; }     \
    action own_mark() { meta.flags = meta.flags | INA_FLAG_ECN; }

#endif // INA_SLOT_FLAGS_P4
