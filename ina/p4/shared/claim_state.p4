// The registers of a shared slot, and what a packet may do to them: included inside Claims, which is
// spelled anew where choices are tables.

    STATE_OWNER(slot_owner, SLOTS_TOTAL)
    STATE_PAIR(round_t, slot_round, seq, bitmap, SLOTS_TOTAL)

    // Slots of one job's own: as in Slots. There is no other owner than an earlier incarnation.
    STATE_OWNER_ACTION(slot_owner, own_epoch,
        value.epoch == meta.epoch, NOT_OLDER(meta.epoch, value.epoch),
        if (NOT_OLDER(meta.epoch, value.epoch)) { value.epoch = meta.epoch; })

    // Shared slots: the owner keeps it by being heard of, anybody gets one that is old. Free is old.
    STATE_OWNER_ACTION(slot_owner, claim,
        value.epoch == meta.epoch, IS_OLD(value.stamp),
        if (value.epoch == meta.epoch || IS_OLD(value.stamp)) {
            value.epoch = meta.epoch;
            value.stamp = USED_STAMP;
        })

    // A resend never claims and never prolongs: late copies of it would keep slots for ever.
    STATE_OWNER_ACTION(slot_owner, look,
        value.epoch == meta.epoch, IS_OLD(value.stamp),
        )

    // The result passes: the sum has been taken out of here, whoever may come.
    STATE_OWNER_ACTION(slot_owner, release,
        value.epoch == meta.epoch, IS_OLD(value.stamp),
        if (value.epoch == meta.epoch) { value.stamp = FREE_STAMP; })

    // The slot was another's, or an earlier incarnation's.
    STATE_PAIR_ACTION(round_t, slot_round, seq, bitmap, begin_round, meta.before, meta.bitmap,
        value.seq = hdr.ina.seq;
        value.bitmap = meta.worker_bit;
        rv_1 = 0;
        rv_2 = value.bitmap;)

    // The same owner: the sequence number decides.
    STATE_PAIR_ACTION(round_t, slot_round, seq, bitmap, enter_round, meta.before, meta.bitmap,
        rv_1 = 0;
        rv_2 = 0;
        if (hdr.ina.seq == value.seq) {
            rv_1 = value.bitmap;
            JOIN_SET(value.bitmap, rv_1, meta.worker_bit, meta.full_bitmap)
            rv_2 = value.bitmap;
        } else if (NOT_OLDER(hdr.ina.seq, value.seq)) {
            value.seq = hdr.ina.seq;
            value.bitmap = meta.worker_bit;
            rv_2 = value.bitmap;
        })

    // Closed by its number: of what comes of this round, all is older from now on.
    STATE_PAIR_ACTION(round_t, slot_round, seq, bitmap, flush_round, meta.before, meta.bitmap,
        rv_1 = 0;
        rv_2 = 0;
        if (hdr.ina.seq == value.seq && value.bitmap != 0) {
            rv_1 = value.bitmap;
            value.seq = value.seq + 1;
            value.bitmap = 0;
        })
