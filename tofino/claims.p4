// Claims: who owns the slot now, and what does this packet find in it? Mode `shared`'s Slots, with the
// registers of ../ina/p4/shared/claim_state.p4. What is done to them is chosen by tables here.
//
// The stages of Tofino are few, and so are the words that a stateful ALU sees of a packet: two. An owner is
// asked by epoch and by one number, the time of which a slot must be unheard to be old for this packet:
// now - age_us. A claim leaves that number and PATIENCE in the slot, so that the owner seems to have been
// heard of age_us - PATIENCE before now: that is lead_us, here. So jobs with equal age_us lose a slot after
// PATIENCE; one with more comes after the others.
//
// The clock counts 256 ns, and wraps around after 18 minutes. Times are compared as plain numbers: a slot
// that is released has time 0, and is free whatever the clock says. One that a job left without releasing
// it looks used from the next wrap on, until the clock comes to the same time again: what finds it so goes
// on alone.
//
// Nobody is evicted here (MODE_EVICTS): who loses a slot loses the sum in it, and its workers send again.

#ifndef INA_TOFINO_CLAIMS_P4
#define INA_TOFINO_CLAIMS_P4

#include "../ina/p4/shared/slot_flags.p4"

// Which of the two conditions of an owner's action held (STATE_OWNER_ACTION); 0: none was asked.
#define NEITHER 1
#define FIRST_HELD 2
#define SECOND_HELD 4
#define BOTH_HELD 8

// Whether this first copy looked for its slot, and it was another job's: then it is to be told (MODE_TELLS).
#ifdef MODE_TELLS
#if __TARGET_TOFINO__ == 1
#define IS_ANEW(meta) ((meta).harvest == 0)
#else
#define IS_ANEW(meta) ((meta).is_resend == 0)
#endif
#define OR_COLLIDES(meta)                                                     \
    || ((meta).is_shared == 1 && (meta).sender == SENDER_CHILD && IS_ANEW(meta) \
        && (meta).standing == NEITHER)
#else
#define OR_COLLIDES(meta)
#endif

#define OF_CLOCK 39:8 // 256 ns, of 48 bits of ns
#ifndef US_TO_CLOCK_BITS
#define US_TO_CLOCK_BITS 2
#endif

// Of both copies of a round, in one table each.
#define TOUCH_ROUND(choice, begin, enter, again)                              \
    table choice {                                                            \
        key = {                                                               \
            meta.is_shared: ternary @name("is_shared");                       \
            meta.sender: ternary @name("sender");                             \
            ANEW_KEY                                                          \
            meta.standing: ternary @name("standing");                         \
        }                                                                     \
        actions = { begin; enter; again; @defaultonly NoAction; }             \
        const entries = {                                                     \
            (0, SENDER_CHILD, _, BOTH_HELD): enter(); /* same, and so not older */\
            (0, SENDER_CHILD, _, SECOND_HELD): begin();                       \
            (1, SENDER_CHILD, 0, FIRST_HELD): enter(); /* same, heard of */   \
            (1, SENDER_CHILD, 0, BOTH_HELD): enter();                         \
            (1, SENDER_CHILD, 0, SECOND_HELD): begin();                       \
            (1, SENDER_CHILD, 1, FIRST_HELD): again();                        \
            (1, SENDER_CHILD, 1, BOTH_HELD): again();                         \
        }                                                                     \
        size = 7;                                                             \
        const default_action = NoAction();                                    \
    }

// On Tofino 1 resends touch nothing: they go on alone, and the second pass looks for its sum. Whether it
// is one is asked where the owner is: there is no stage before.
#if __TARGET_TOFINO__ == 1
#define ANEW_KEY meta.harvest: ternary @name("harvest");
#define RESEND_KEY                                                            \
            hdr.ina.flags: ternary @name("flags");                            \
            hdr.ina.copy: ternary @name("copy");
#define OWNER_ENTRIES                                                         \
            (0, SENDER_CHILD, _, _, _): own_epoch();                          \
            (1, SENDER_CHILD, 1, _, _): look();                               \
            (1, SENDER_CHILD, 0, 0 &&& INA_FLAG_RESEND, 0): claim();          \
            (1, SENDER_PARENT, _, _, _): release();
#else
#define ANEW_KEY meta.is_resend: ternary @name("is_resend");
#define RESEND_KEY
#define OWNER_ENTRIES                                                         \
            (0, SENDER_CHILD, _): own_epoch();                                \
            (1, SENDER_CHILD, 0): claim();                                    \
            (1, SENDER_CHILD, 1): look();                                     \
            (1, SENDER_PARENT, _): release();
#endif

control Claims(inout headers_t hdr, inout ina_metadata_t meta,
               in ingress_intrinsic_metadata_t ig_intr_md) {
#include "../ina/p4/shared/claim_state.p4"

    SLOT_FLAGS_ACTIONS

    action resent() { meta.is_resend = 1; }

#if __TARGET_TOFINO__ == 1
    // The second pass: only a sum that is whole may leave. It is the same whoever has it summed.
    STATE_PAIR_ACTION(round_t, slot_round, seq, bitmap, peek_round, meta.before, meta.bitmap,
        rv_1 = 0;
        rv_2 = 0;
        if (hdr.ina.seq == value.seq) {
            rv_1 = value.bitmap;
            rv_2 = value.bitmap;
        })
#else
    // A stage for each of these: the lane is what Admission has found of it.
    action find_slot() {
        meta.slot_index = meta.slot_index + (bit<SLOT_INDEX_BITS>)meta.lane;
        meta.lane_room = meta.claimable |-| meta.lane;
        meta.age_limit = meta.age_limit << US_TO_CLOCK_BITS;
    }
    action find_time() { meta.heard_before = meta.now |-| meta.age_limit; }
    // Its bit may be in already: then nothing changes.
    action leave_with_sum() { meta.bitmap = meta.before | meta.worker_bit; }
#endif

    table touch_owner {
        key = {
            meta.is_shared: ternary @name("is_shared");
            meta.sender: ternary @name("sender");
            ANEW_KEY
            RESEND_KEY
        }
        actions = { own_epoch; claim; look; release; @defaultonly NoAction; }
        const entries = {
            OWNER_ENTRIES
        }
        size = 4;
        const default_action = NoAction();
    }

#if __TARGET_TOFINO__ == 1
    TOUCH_ROUND(touch_round_1, begin_round_1, enter_round_1, peek_round_1)
    TOUCH_ROUND(touch_round_2, begin_round_2, enter_round_2, peek_round_2)
#else
    TOUCH_ROUND(touch_round_1, begin_round_1, enter_round_1, flush_round_1)
    TOUCH_ROUND(touch_round_2, begin_round_2, enter_round_2, flush_round_2)
#endif

    apply {
        own_flags();
        if (hdr.ipv4.ecn == ECN_CE) {
            own_mark();
        }
        // By its worker; of a sum, by one whose part is in it.
        if ((hdr.ina.flags & INA_FLAG_RESEND) != 0 || hdr.ina.copy != 0) {
            resent();
        }
        meta.now = ig_intr_md.ingress_mac_tstamp[OF_CLOCK];
#if __TARGET_TOFINO__ == 1
        touch_owner.apply();
        touch_round_1.apply();
        touch_round_2.apply();
#else
        find_slot();
        find_time();
        if (meta.is_shared == 0 || meta.lane_room != 0) { // else the lane has no slot
            touch_owner.apply();
            touch_round_1.apply();
            touch_round_2.apply();
        }
        if (meta.is_shared == 1 && meta.is_resend == 1 && meta.before != 0) {
            leave_with_sum();
        }
#endif
    }
}

#endif // INA_TOFINO_CLAIMS_P4
