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
// Who loses a slot before its sum is whole need not lose the sum: where the target can swap a register
// for what a packet brings (MODE_EVICTS), the packet that takes the slot over leaves as the owner's sum,
// to the owner's aggregator. So age may be short, and a more important job may have less patience.
//
// Who finds a slot taken leaves WANTED in it (MODE_TELLS, Contribution), and the owner's sum carries that
// away. So a job whose workers straggle learns that others could have used the slot (A2TP, EuroSys 2023).
//
// A program of this mode has jobs with slots of their own as well, and sums whose parts are sets: their
// slots are taken as in Slots.

#ifndef INA_CLAIMS_P4
#define INA_CLAIMS_P4

#include "slot_flags.p4"

control Claims(inout headers_t hdr, inout ina_metadata_t meta) {
#include "claim_state.p4"

#ifdef MODE_EVICTS
    // What the packets of a round say alike, besides its tag: an owner's sum that is put out needs it.
    STATE(bit<32>, slot_said, SLOTS_TOTAL)

    STATE_ACTION(bit<32>, slot_said, say, meta.said,
        value = meta.said;
        rv = value;)
    STATE_ACTION(bit<32>, slot_said, say_anew, meta.said,
        rv = value;
        value = meta.said;)

    STATE_PAIR_ACTION(round_t, slot_round, seq, bitmap, swap_round, meta.former_seq, meta.before,
        rv_1 = value.seq;
        rv_2 = value.bitmap;
        value.seq = hdr.ina.seq;
        value.bitmap = meta.worker_bit;)

#define SAY RUN(say)

    action read_said() {
        meta.said = hdr.ina.slot ++ hdr.ina.exponent ++ hdr.ina.value_type ++ 3w0 ++ meta.has_values;
    }
    action has_values() { meta.has_values = 1; }
    action evict() { meta.evicts = 1; }
    action find_former() { meta.former = meta.epoch - meta.age; }

    // Jobs that share slots, by their whole epochs: of an owner that loses its slot, where its sum goes.
    action owner_is(bit<16> job, bit<16> job_index, bit<32> full_bitmap, bit<9> parent_port,
                    bit<8> own_worker, bit<4> own_level) {
        meta.knows_owner = 1;
        meta.owner_job = job;
        meta.owner_index = job_index;
        meta.owner_full = full_bitmap;
        meta.owner_port = parent_port;
        meta.owner_worker = own_worker;
        meta.owner_level = own_level;
    }
    table owners {
        key = { meta.former: exact @name("epoch"); }
        actions = { owner_is; @defaultonly NoAction; }
        const default_action = NoAction();
        size = JOBS_TOTAL;
    }
#else
#define SAY
#endif

    action resent() { meta.is_resend = 1; }
    // The clock half of its way round is as far from now as can be: old for everybody.
    action stamp_free() { meta.stamp = meta.now + 0x80000000; }
    action stamp_used() { meta.stamp = meta.now - meta.lead; }
    action enter_alone() {
        meta.before = 0;
        meta.bitmap = meta.worker_bit;
    }
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
            stamp_free();
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
            stamp_used();
            RUN(claim)
#ifdef MODE_EVICTS
            if (hdr.values.isValid() || hdr.ina.shape != INA_SHAPE_SUM) {
                has_values();
            }
            read_said();
            find_former();
            if (meta.age != 0 && meta.owner == meta.epoch
                && meta.worker_bit != meta.full_bitmap) { // else it is a sum itself
                owners.apply();
            }
            if (meta.knows_owner == 1) {
                RUN(swap_round)
                RUN(say_anew)
                if (meta.before != 0 && meta.before != meta.owner_full && meta.said[0:0] == 1) {
                    evict();
                    meta.bitmap = meta.worker_bit;
                } else {
                    enter_alone(); // nothing is lost
                }
            } else
#endif
            if (meta.age == 0) {
                RUN(enter_round)
                if ((meta.before & meta.worker_bit) != 0
                    && (meta.before | meta.worker_bit) != meta.before) {
                    stay_out(); // a set of which some are in, and some are not
                } else if (meta.before == 0 && meta.bitmap != 0) {
                    SAY
                }
            } else if (meta.owner == meta.epoch) {
                RUN(begin_round)
                SAY
            } else {
                stay_out();
                meta.collides = 1;
            }
        }
    }
}

#endif // INA_CLAIMS_P4
