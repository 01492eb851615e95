// Slots: whose round is the slot in, is this packet older, of that round, or newer, and who is in it?
//
// A slot is owned by a tag (epoch, sequence number). A newer tag takes the slot over, so that nobody
// ever clears a register: epochs start at 1 and only grow, registers start at 0. Two slots to a lane are
// enough (protocol.md, "Slot, in pool mode"): a worker sends chunk s + 2W, which overwrites the slot of
// chunk s, only after it has the result of s + W; that sum holds a contribution of every worker, and a
// worker contributes to s + W only after it has the result of s. So nobody can still need s.
//
// Sequence number and bitmap are two words of one register, so that one access decides both: a packet
// of the owner's round finds who came before it, a newer one is alone in the round that it begins.

#ifndef INA_SLOTS_P4
#define INA_SLOTS_P4

#include "slot_flags.p4"

control Slots(inout headers_t hdr, inout ina_metadata_t meta) {
    STATE(bit<32>, slot_epoch, SLOTS_TOTAL)
    STATE_PAIR(round_t, slot_round, seq, bitmap, SLOTS_TOTAL)

    // Writing an equal epoch changes nothing, so one comparison is enough.
    STATE_ACTION(bit<32>, slot_epoch, own_epoch, meta.age,
        rv = meta.epoch - value;
        if (NOT_OLDER(meta.epoch, value)) { value = meta.epoch; })

    // The first packet of a newer epoch: what the registers hold is of another incarnation.
    STATE_PAIR_ACTION(round_t, slot_round, seq, bitmap, begin_round, meta.before, meta.bitmap,
        value.seq = hdr.ina.seq;
        value.bitmap = meta.worker_bit;
        rv_1 = 0;
        rv_2 = value.bitmap;)

    // The same incarnation: the sequence number decides.
    STATE_PAIR_ACTION(round_t, slot_round, seq, bitmap, enter_round, meta.before, meta.bitmap,
        rv_1 = 0;
        rv_2 = 0;
        if (hdr.ina.seq == value.seq) {
            rv_1 = value.bitmap;
            value.bitmap = value.bitmap | meta.worker_bit;
            rv_2 = value.bitmap;
        } else if (NOT_OLDER(hdr.ina.seq, value.seq)) {
            value.seq = hdr.ina.seq;
            value.bitmap = meta.worker_bit;
            rv_2 = value.bitmap;
        })

    // An older incarnation is in no round.
    action stay_out() {
        meta.before = 0;
        meta.bitmap = 0;
    }

    SLOT_FLAGS_ACTIONS
    BY_AGE(touch_round, meta.age, begin_round, enter_round, stay_out)

    apply {
        own_flags();
        if (hdr.ipv4.ecn == ECN_CE) {
            own_mark();
        }
        RUN(own_epoch)
        RUN_BY_AGE(touch_round, meta.age, begin_round, enter_round, stay_out)
    }
}

#endif // INA_SLOTS_P4
