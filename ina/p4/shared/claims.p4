// Claims: who owns the slot now, and what does this packet find in it? Mode `shared`'s Slots.
//
// Jobs share these slots. Whoever comes first claims one for as long as its sum takes: until the result
// passes on its way down, or until nothing has been heard of it for AGE. Whoever finds it taken goes on
// alone to the job's aggregator, which keeps a slot for each lane and adds up sets of workers. So whatever
// happens here is exact: a switch may merge, pass on, drop or forget, as long as a packet holds exactly
// those that its `contributors` names (docs/shared_slots.md). What must not be, is to wait for it.
//
// A worker's second copy (RESEND) takes its round's sum along, itself added if it was not in, and closes
// the round: one lost packet would otherwise keep the others' parts here for ever. What comes late then
// goes on alone, too.
//
// A program of this mode has jobs with slots of their own as well, and sums whose parts are sets: their
// slots are taken as in Slots.

#ifndef INA_CLAIMS_P4
#define INA_CLAIMS_P4

#include "slot_flags.p4"

struct owner_t {
    bit<32> epoch; // of the job that claimed it last; 0: nobody yet
    bit<32> stamp; // when it was last heard of (meta.now)
}

control Claims(inout headers_t hdr, inout ina_metadata_t meta) {
    STATE_PAIR(owner_t, slot_owner, epoch, stamp, SLOTS_TOTAL)
    STATE_PAIR(round_t, slot_round, seq, bitmap, SLOTS_TOTAL)

    // Slots of one job's own: as in Slots. There is no other owner than an earlier incarnation.
    STATE_PAIR_ACTION(owner_t, slot_owner, epoch, stamp, own_epoch, meta.age, meta.owner,
        rv_1 = meta.epoch - value.epoch;
        if (NOT_OLDER(meta.epoch, value.epoch)) { value.epoch = meta.epoch; }
        rv_2 = value.epoch;)

    // Shared slots: the owner keeps it by being heard of, anybody gets one that is old. Free is old.
    STATE_PAIR_ACTION(owner_t, slot_owner, epoch, stamp, claim, meta.age, meta.owner,
        rv_1 = meta.epoch - value.epoch;
        if (value.epoch == meta.epoch || IS_OLD(meta.now, value.stamp, meta.age_limit)) {
            value.epoch = meta.epoch;
            value.stamp = meta.now;
        }
        rv_2 = value.epoch;)

    // A resend never claims and never prolongs: late copies of it would keep slots for ever.
    STATE_PAIR_ACTION(owner_t, slot_owner, epoch, stamp, look, meta.age, meta.owner,
        rv_1 = meta.epoch - value.epoch;
        rv_2 = value.epoch;)

    // The result passes: the sum has been taken out of here, whoever may come.
    STATE_PAIR_ACTION(owner_t, slot_owner, epoch, stamp, release, meta.age, meta.owner,
        rv_1 = meta.epoch - value.epoch;
        if (value.epoch == meta.epoch) { value.stamp = meta.now - meta.age_limit; }
        rv_2 = value.epoch;)

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

    action resent() { meta.is_resend = 1; }
    action stay_out() {
        meta.before = 0;
        meta.bitmap = 0;
    }

    // A sum that leaves has the resent part, too, unless some of that is in it already.
    action leave_with_it() { meta.bitmap = meta.before | meta.worker_bit; }
    action leave_without_it() { meta.bitmap = meta.before; }

    SLOT_FLAGS_ACTIONS
    BY_AGE(touch_round, meta.age, begin_round, enter_round, stay_out)

    apply {
        own_flags();
        if (hdr.ipv4.ecn == ECN_CE) {
            own_mark();
        }
        if ((hdr.ina.flags & INA_FLAG_RESEND) != 0 || hdr.ina.copy != 0) {
            resent(); // by its worker, or, of a sum, by one whose part is in it
        }
        if (meta.is_shared == 0) {
            RUN(own_epoch)
            RUN_BY_AGE(touch_round, meta.age, begin_round, enter_round, stay_out)
        } else if (meta.lane >= meta.claimable) {
            stay_out(); // as many lanes as the job may claim slots for have one
        } else if (meta.access == ACCESS_DOWN) {
            RUN(release)
        } else if (meta.is_resend == 1) {
            RUN(look)
            if (meta.age == 0) {
                RUN(flush_round)
            } else {
                stay_out();
            }
            if (meta.before != 0) {
                meta.is_flush = 1;
                if ((meta.before & meta.worker_bit) == 0) {
                    leave_with_it();
                } else {
                    leave_without_it();
                }
            }
        } else {
            RUN(claim)
            if (meta.age == 0) {
                RUN(enter_round)
                if ((meta.before & meta.worker_bit) != 0
                    && (meta.before | meta.worker_bit) != meta.before) {
                    stay_out(); // a set of which some are in, and some are not
                }
            } else if (meta.owner == meta.epoch) {
                RUN(begin_round)
            } else {
                stay_out();
                meta.collides = 1;
            }
        }
    }
}

#endif // INA_CLAIMS_P4
