// Slots: whose round is the slot in, and is this packet older, of that round, or newer?
//
// A slot is owned by a tag (epoch, sequence number). A newer tag takes the slot over, so that nobody
// ever clears a register: epochs start at 1 and only grow, registers start at 0. Two slots to a lane are
// enough (protocol.md, "Slot, in pool mode"): a worker sends chunk s + 2W, which overwrites the slot of
// chunk s, only after it has the result of s + W; that sum holds a contribution of every worker, and a
// worker contributes to s + W only after it has the result of s. So nobody can still need s.

#ifndef INA_SLOTS_P4
#define INA_SLOTS_P4

control Slots(inout headers_t hdr, inout ina_metadata_t meta) {
    STATE(bit<32>, slot_epoch, SLOTS_TOTAL)
    STATE(bit<32>, slot_seq, SLOTS_TOTAL)

    // Writing an equal epoch changes nothing, so one comparison is enough here and below.
    STATE_ACTION(bit<32>, slot_epoch, own_epoch, meta.owner_epoch,
        rv = value;
        if (NOT_OLDER(meta.epoch, value)) { value = meta.epoch; })

    STATE_ACTION(bit<32>, slot_seq, take_seq, meta.owner_seq,
        rv = value;
        value = hdr.ina.seq;)
    STATE_ACTION(bit<32>, slot_seq, own_seq, meta.owner_seq,
        rv = value;
        if (NOT_OLDER(hdr.ina.seq, value)) { value = hdr.ina.seq; })

    action keep_seq() {}

    action compare_epoch() { meta.age = meta.epoch - meta.owner_epoch; }
    action compare_seq() { meta.age = hdr.ina.seq - meta.owner_seq; }

    action take() { meta.access = ACCESS_TAKE; }
    action join() { meta.access = ACCESS_JOIN; }
    action stale() { meta.access = ACCESS_STALE; }

    BY_AGE(touch_seq, meta.age, take_seq, own_seq, keep_seq)
    BY_AGE(decide, meta.age, take, join, stale)

    apply {
        own_epoch();
        compare_epoch();
        RUN_BY_AGE(touch_seq, meta.age, take_seq, own_seq, keep_seq)
        if (meta.age == 0) {
            compare_seq(); // the same incarnation: the sequence number decides
        }
        RUN_BY_AGE(decide, meta.age, take, join, stale)
    }
}

#endif // INA_SLOTS_P4
