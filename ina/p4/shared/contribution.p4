// Contribution: what a packet does to the sum, and what the packets of a round say besides their values.

#ifndef INA_CONTRIBUTION_P4
#define INA_CONTRIBUTION_P4

control Contribution(inout headers_t hdr, inout ina_metadata_t meta) {
    STATE(bit<8>, slot_next_exponent, SLOTS_TOTAL)
    STATE(bit<8>, slot_flags, SLOTS_TOTAL)
    STATE(bit<16>, slot_digest, SLOTS_TOTAL)
    STATE(bit<32>, slot_check, SLOTS_TOTAL)

    STATE_ACTION(bit<8>, slot_next_exponent, next_exponent_take, hdr.ina.next_exponent,
        value = hdr.ina.next_exponent;
        rv = value;)
    STATE_ACTION(bit<8>, slot_next_exponent, next_exponent_join, hdr.ina.next_exponent,
        if (hdr.ina.next_exponent > value) { value = hdr.ina.next_exponent; }
        rv = value;)
    STATE_ACTION(bit<8>, slot_next_exponent, next_exponent_read, hdr.ina.next_exponent,
        rv = value;)

    STATE_ACTION(bit<8>, slot_flags, flags_take, meta.flags,
        value = meta.flags;
        rv = value;)
    STATE_ACTION(bit<8>, slot_flags, flags_join, meta.flags,
        value = value | meta.flags;
        rv = value;)
    STATE_ACTION(bit<8>, slot_flags, flags_read, meta.flags,
        rv = value;)

#ifdef MODE_TELLS
    // By a packet that found the slot another job's: the owner's sum says it when it leaves. The packet learns
    // nothing of what is there.
    STATE_MARK(bit<8>, slot_flags, flags_want, value = value | INA_FLAG_WANTED;)
#endif

    // Workers that have submitted the same things say the same: then the sum is as many times that.
    STATE_ACTION(bit<16>, slot_digest, digest_take, hdr.ina.digest,
        value = hdr.ina.digest;
        rv = value;)
    STATE_ACTION(bit<16>, slot_digest, digest_join, hdr.ina.digest,
        value = value + hdr.ina.digest;
        rv = value;)
    STATE_ACTION(bit<16>, slot_digest, digest_read, hdr.ina.digest,
        rv = value;)

    // Linear in the values, as their sum is: so the sum of the checks is the check of the sums. Workers
    // know what it must be; a switch only adds.
    STATE_ACTION(bit<32>, slot_check, check_take, hdr.ina.check,
        value = hdr.ina.check;
        rv = value;)
    STATE_ACTION(bit<32>, slot_check, check_join, hdr.ina.check,
        value = value + hdr.ina.check;
        rv = value;)
    STATE_ACTION(bit<32>, slot_check, check_read, hdr.ina.check,
        rv = value;)

#ifdef MODE_EVICTS
    // What the slot has gathered leaves, and what the packet brings stays: see Claims.
    STATE_ACTION(bit<8>, slot_next_exponent, touch_next_exponent_swap, hdr.ina.next_exponent,
        rv = value;
        value = hdr.ina.next_exponent;)
    STATE_ACTION(bit<8>, slot_flags, touch_flags_swap, meta.flags,
        rv = value;
        value = meta.flags;)
    STATE_ACTION(bit<16>, slot_digest, touch_digest_swap, hdr.ina.digest,
        rv = value;
        value = hdr.ina.digest;)
    STATE_ACTION(bit<32>, slot_check, touch_check_swap, hdr.ina.check,
        rv = value;
        value = hdr.ina.check;)
    action decide_swap() { meta.access = ACCESS_EVICT; }
#endif

    action take() { meta.access = ACCESS_TAKE; }
    action join() { meta.access = ACCESS_JOIN; }
    action read() { meta.access = ACCESS_READ; }

    action compare_full() { meta.missing = meta.bitmap ^ meta.full_bitmap; }

    BY_ROUND(decide, take, join, read)
    BY_ROUND(touch_next_exponent, next_exponent_take, next_exponent_join, next_exponent_read)
    BY_ROUND(touch_flags, flags_take, flags_join, flags_read)
    BY_ROUND(touch_digest, digest_take, digest_join, digest_read)
    BY_ROUND(touch_check, check_take, check_join, check_read)

    apply {
#ifdef MODE_TELLS
        if (meta.bitmap == 0) { // in no round: it collides, and is here for this alone
            RUN(flags_want)
        } else
#endif
        {
            compare_full();
            RUN_BY_ROUND(decide, take, join, read)
            RUN_BY_ROUND(touch_next_exponent, next_exponent_take, next_exponent_join, next_exponent_read)
            RUN_BY_ROUND(touch_flags, flags_take, flags_join, flags_read)
            RUN_BY_ROUND(touch_digest, digest_take, digest_join, digest_read)
            RUN_BY_ROUND(touch_check, check_take, check_join, check_read)
        }
    }
}

#endif // INA_CONTRIBUTION_P4
