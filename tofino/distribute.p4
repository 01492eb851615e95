// Distribute: what becomes of the packet. In: the result to all, the stored result to one, the sum to the
// parent, the parent's result to the children, or nothing (Distribute). Out: each copy gets its receiver's
// addresses (Address). Why sums go up again: v1model/distribute.p4.
//
// On Tofino 1 a packet that leaves with a sum does so in its second pass: the first has given it the
// first word of each register pair, and sends it to the recirculation port; the second goes the same way
// as a repeated contribution of that child would, so that Slots looks again whose slot it is. A slot
// that a newer round has taken meanwhile gives nothing. The parent's results have all words.

#ifndef INA_TOFINO_DISTRIBUTE_P4
#define INA_TOFINO_DISTRIBUTE_P4

typedef bit<8> outcome_t;
const outcome_t OUTCOME_REFUSED = 0;
const outcome_t OUTCOME_ABSORBED = 1;  // its values are in the slot
const outcome_t OUTCOME_COMPLETED = 2; // and they were the last
const outcome_t OUTCOME_REPLAYED = 3;
const outcome_t OUTCOME_DUPLICATE = 4;
const outcome_t OUTCOME_STALE = 5;
const outcome_t OUTCOME_HARVESTED = 6; // second pass, whole now
const outcome_t OUTCOME_LOST = 7;      // second pass, but the slot is another round's
const outcome_t OUTCOME_PASSED_DOWN = 8; // the parent's result
const outcome_t OUTCOME_ASTRAY = 9;    // the same, but its path leads to no child
// Of jobs that share slots, besides. With SHARED_ALONE: goes up by itself. With SHARED_SUM: a sum goes up,
// whether it is complete or not.
const outcome_t SHARED_ALONE = 0x20;
const outcome_t SHARED_SUM = 0x40;
const outcome_t OUTCOME_COLLISION = 0x20; // the slot is another job's
const outcome_t OUTCOME_BYPASSED = 0x21;  // its lane has none
const outcome_t OUTCOME_MISSED = 0x22;    // a resend that finds no sum
const outcome_t OUTCOME_LATE = 0x23;      // the round is over here
const outcome_t OUTCOME_UP = 0x40;        // it was the last
const outcome_t OUTCOME_UP_AGAIN = 0x41;  // a resend finds a sum that is complete
const outcome_t OUTCOME_JOINED_AND_FLUSHED = 0x42; // a resend takes a sum along, and was not in
const outcome_t OUTCOME_FLUSHED = 0x43;   // the same, and was in
const outcome_t OUTCOME_UP_WHOLE = 0x44;  // second pass, whole now

#ifdef MODE_SHARED
#if __TARGET_TOFINO__ == 1
// Has it passed before; or, on Tofino 2, has its lane a slot.
#define FIRST_ASKED meta.harvest: ternary @name("harvest");
#define FIRST_ASKED_ENTRIES                                                   \
            (ACCESS_READ, 0, _, _, 1): come_out(OUTCOME_UP_WHOLE);            \
            (_, _, _, _, 1): come_out_dropped(OUTCOME_LOST, INA_DROP_STALE);
#define FIRST_ASKED_SIZE 2
#define HARVEST_SHARED_ENTRY (OUTCOME_UP, _, VALUES_PER_PACKET, _, _): again_for_all();
#define HARVEST_SHARED_SIZE 1
#else
#define FIRST_ASKED meta.lane_room: ternary @name("lane_room");
#define FIRST_ASKED_ENTRIES (ACCESS_STALE, _, _, _, 0): come_out(OUTCOME_BYPASSED);
#define FIRST_ASKED_SIZE 1
#endif
#define OR_OUTCOME(shared) || meta.outcome == shared
#else
#define OR_OUTCOME(shared)
#define HARVEST_SHARED_ENTRY
#define HARVEST_SHARED_SIZE 0
#endif

#define JOB_COUNTER(name) COUNTER(bit<16>, name, JOBS_TOTAL)

control Distribute(inout headers_t hdr, inout ina_metadata_t meta,
                   in ingress_intrinsic_metadata_t ig_intr_md,
                   inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr_md,
                   inout ingress_intrinsic_metadata_for_tm_t ig_tm_md) {
    // By job: every admitted packet is counted in exactly one of contributions, duplicates, replays,
    // stale and passed_down; a contribution that completes a sum also in results. Second passes count in
    // none.
    JOB_COUNTER(job_contributions)
    JOB_COUNTER(job_results)
    JOB_COUNTER(job_replays)
    JOB_COUNTER(job_duplicates)
    JOB_COUNTER(job_stale)
    JOB_COUNTER(job_passed_down)
#ifdef MODE_SHARED
    // See v1model's. Nobody is evicted here.
    JOB_COUNTER(job_flushes)
    JOB_COUNTER(job_collisions)
    JOB_COUNTER(job_bypassed)
    JOB_COUNTER(job_late)
    JOB_COUNTER(job_missed)
#endif
    // By INA_DROP_*: why packets to the switch were dropped, of all jobs and of none.
    COUNTER(bit<8>, drops, INA_DROP_REASONS)

    action come_out(outcome_t outcome) { meta.outcome = outcome; }
    action come_out_dropped(outcome_t outcome, bit<8> reason) {
        meta.outcome = outcome;
        meta.drop_reason = reason;
    }

#ifdef MODE_SHARED
    // What a packet of a job that shares slots has found there.
    table shared_outcomes {
        key = {
            meta.access: ternary @name("access");
            meta.missing: ternary @name("missing");
            meta.is_resend: ternary @name("is_resend");
            meta.standing: ternary @name("standing");
            FIRST_ASKED
        }
        actions = { come_out; come_out_dropped; }
        const entries = {
            FIRST_ASKED_ENTRIES
            (ACCESS_STALE, _, 1, _, _): come_out(OUTCOME_MISSED);
            (ACCESS_STALE, _, 0, NEITHER, _): come_out(OUTCOME_COLLISION);
            (ACCESS_STALE, _, 0, _, _): come_out(OUTCOME_LATE);
            (ACCESS_READ, 0, 1, _, _): come_out(OUTCOME_UP_AGAIN);
            (ACCESS_READ, _, 1, _, _): come_out(OUTCOME_FLUSHED);
            (ACCESS_READ, _, _, _, _): come_out_dropped(OUTCOME_DUPLICATE, INA_DROP_DUPLICATE);
            (ACCESS_TAKE, 0, _, _, _): come_out(OUTCOME_UP);
            (ACCESS_JOIN, 0, _, _, _): come_out(OUTCOME_UP);
            (ACCESS_JOIN, _, 1, _, _): come_out(OUTCOME_JOINED_AND_FLUSHED);
            (ACCESS_TAKE, _, _, _, _): come_out(OUTCOME_ABSORBED);
            (ACCESS_JOIN, _, _, _, _): come_out(OUTCOME_ABSORBED);
            (ACCESS_DOWN, _, _, _, _): come_out(OUTCOME_PASSED_DOWN);
        }
        size = 12 + FIRST_ASKED_SIZE;
        const default_action = come_out(OUTCOME_REFUSED);
    }
#endif

    table outcomes {
        key = {
            meta.harvest: ternary @name("harvest");
            meta.access: ternary @name("access");
            meta.missing: ternary @name("missing");
        }
        actions = { come_out; come_out_dropped; }
        const entries = {
            (1, ACCESS_READ, 0): come_out(OUTCOME_HARVESTED);
            (1, _, _): come_out_dropped(OUTCOME_LOST, INA_DROP_STALE);
            (0, ACCESS_TAKE, 0): come_out(OUTCOME_COMPLETED);
            (0, ACCESS_JOIN, 0): come_out(OUTCOME_COMPLETED);
            (0, ACCESS_TAKE, _): come_out(OUTCOME_ABSORBED);
            (0, ACCESS_JOIN, _): come_out(OUTCOME_ABSORBED);
            (0, ACCESS_READ, 0): come_out(OUTCOME_REPLAYED);
            (0, ACCESS_READ, _): come_out_dropped(OUTCOME_DUPLICATE, INA_DROP_DUPLICATE);
            (0, ACCESS_STALE, _): come_out_dropped(OUTCOME_STALE, INA_DROP_STALE);
            (0, ACCESS_DOWN, _): come_out(OUTCOME_PASSED_DOWN);
        }
        size = 10;
        const default_action = come_out(OUTCOME_REFUSED);
    }

    action count_contribution() { job_contributions.count(hdr.bridge.job_index); }
    action count_result() { job_results.count(hdr.bridge.job_index); }
    action count_replay() { job_replays.count(hdr.bridge.job_index); }
    action count_duplicate() { job_duplicates.count(hdr.bridge.job_index); }
    action count_stale() { job_stale.count(hdr.bridge.job_index); }
    action count_passed_down() { job_passed_down.count(hdr.bridge.job_index); }
#ifdef MODE_SHARED
    action count_flush() { job_flushes.count(hdr.bridge.job_index); }
    action count_collision() { job_collisions.count(hdr.bridge.job_index); }
    action count_bypassed() { job_bypassed.count(hdr.bridge.job_index); }
    action count_late() { job_late.count(hdr.bridge.job_index); }
    action count_missed() { job_missed.count(hdr.bridge.job_index); }
#endif
    action count_drop() { drops.count(meta.drop_reason); }

    action drop() { ig_dprsr_md.drop_ctl = 1; }
    action lose_way() {
        meta.outcome = OUTCOME_ASTRAY;
        meta.drop_reason = INA_DROP_MEMBER;
    }

    // Of a result that `path` names the receiver of: `way` is its part that says which child.
    action to_child(bit<9> port, bit<8> worker) {
        hdr.ina.worker = worker;
        ig_tm_md.ucast_egress_port = port;
    }
    table children {
        key = {
            hdr.ina.job: exact @name("job");
            meta.way: exact @name("way");
        }
        size = MEMBERS_TOTAL;
        actions = { to_child; @defaultonly drop; }
        const default_action = drop();
    }

    action to_all() {
        hdr.bridge.pass = PASS_RESULT;
        hdr.ina.kind = INA_KIND_RESULT;
        hdr.ina.flags = meta.flags; // the slot's; RESEND and others of this packet end here
        hdr.ina.contributors = meta.bitmap;
        ig_tm_md.mcast_grp_a = meta.group;
    }
    action to_sender() {
        hdr.bridge.pass = PASS_RESULT;
        hdr.ina.kind = INA_KIND_RESULT;
        hdr.ina.flags = meta.flags | INA_FLAG_REPLAY;
        hdr.ina.contributors = meta.bitmap;
        ig_tm_md.ucast_egress_port = hdr.bridge.ingress_port;
    }
    // Still a contribution, of this switch: Address says so.
    action to_parent() {
        hdr.bridge.pass = PASS_SUM;
        hdr.ina.flags = meta.flags;
        hdr.ina.worker = INA_PARENT;
        ig_tm_md.ucast_egress_port = meta.parent_port;
    }
#ifdef MODE_SHARED
    // Up as what it is: a contribution of these. A resend is one at the next switch, too.
    action up_alone(bit<8> more_flags) {
        hdr.bridge.pass = PASS_UP;
        hdr.ina.flags = meta.flags | more_flags;
        hdr.ina.worker = INA_PARENT;
        hdr.ina.contributors = meta.worker_bit;
        ig_tm_md.ucast_egress_port = meta.parent_port;
    }
    action up_as_sum(bit<8> more_flags) {
        hdr.bridge.pass = PASS_UP;
        hdr.ina.flags = meta.flags | more_flags;
        hdr.ina.worker = INA_PARENT;
        hdr.ina.contributors = meta.bitmap;
        ig_tm_md.ucast_egress_port = meta.parent_port;
    }
#define SHARED_WAYS_ACTIONS up_alone; up_as_sum;
#define SHARED_WAYS_ENTRIES                                                   \
            (OUTCOME_COLLISION, _, _, _, _): up_alone(INA_FLAG_COLLISION);    \
            (SHARED_ALONE &&& 0xE0, _, _, _, INA_FLAG_RESEND &&& INA_FLAG_RESEND): up_alone(INA_FLAG_RESEND); \
            (SHARED_ALONE &&& 0xE0, _, _, _, _): up_alone(0);                 \
            (SHARED_SUM &&& 0xE0, _, _, _, INA_FLAG_RESEND &&& INA_FLAG_RESEND): up_as_sum(INA_FLAG_RESEND); \
            (SHARED_SUM &&& 0xE0, _, _, _, _): up_as_sum(0);
#define SHARED_WAYS_SIZE 5
#else
#define SHARED_WAYS_ACTIONS
#define SHARED_WAYS_ENTRIES
#define SHARED_WAYS_SIZE 0
#endif
    action down_to_all() {
        hdr.bridge.pass = PASS_RESULT;
        ig_tm_md.mcast_grp_a = meta.group;
    }
    action down_to_one() { hdr.bridge.pass = PASS_RESULT; } // `children` knows where
#if __TARGET_TOFINO__ == 1
    action again_for_all() {
        hdr.bridge.pass = PASS_HARVEST_ALL;
        hdr.bridge.worker_bit = meta.worker_bit;
        ig_tm_md.ucast_egress_port = PIPE_OF(ig_intr_md.ingress_port) ++ (bit<7>)RECIRCULATION_PORT;
    }
    action again_for_sender() {
        hdr.bridge.pass = PASS_HARVEST_ONE;
        hdr.bridge.worker_bit = meta.worker_bit;
        ig_tm_md.ucast_egress_port = PIPE_OF(ig_intr_md.ingress_port) ++ (bit<7>)RECIRCULATION_PORT;
    }
#define WAYS_ACTIONS again_for_all; again_for_sender;
#define WAYS_ENTRIES                                                          \
            HARVEST_SHARED_ENTRY                                              \
            (OUTCOME_HARVESTED, PASS_HARVEST_ALL, _, 0, _): to_all();         \
            (OUTCOME_HARVESTED, _, _, 0, _): to_sender();                     \
            (OUTCOME_HARVESTED, _, _, 1, _): to_parent();                     \
            (OUTCOME_COMPLETED, _, VALUES_PER_PACKET, _, _): again_for_all(); \
            (OUTCOME_REPLAYED, _, VALUES_PER_PACKET, _, _): again_for_sender();
#define WAYS_SIZE 11 + HARVEST_SHARED_SIZE
#else
#define WAYS_ACTIONS
#define WAYS_ENTRIES
#define WAYS_SIZE 6
#endif

    table ways {
        key = {
            meta.outcome: ternary @name("outcome");
            hdr.bridge.pass: ternary @name("pass");
            hdr.ina.value_count: ternary @name("value_count");
            meta.is_inner: ternary @name("is_inner");
            hdr.ina.flags: ternary @name("flags");
        }
        actions = { to_all; to_sender; to_parent; down_to_all; down_to_one; WAYS_ACTIONS SHARED_WAYS_ACTIONS drop; }
        const entries = {
            WAYS_ENTRIES
            SHARED_WAYS_ENTRIES
            (OUTCOME_COMPLETED, _, _, 0, _): to_all();
            (OUTCOME_COMPLETED, _, _, 1, _): to_parent();
            (OUTCOME_REPLAYED, _, _, 0, _): to_sender();
            (OUTCOME_REPLAYED, _, _, 1, _): to_parent();
            (OUTCOME_PASSED_DOWN, _, _, _, 0 &&& INA_FLAG_REPLAY): down_to_all();
            (OUTCOME_PASSED_DOWN, _, _, _, _): down_to_one();
        }
        size = WAYS_SIZE + SHARED_WAYS_SIZE;
        const default_action = drop();
    }

    apply {
#ifdef MODE_SHARED
        if (meta.is_shared == 1) {
            shared_outcomes.apply();
        } else
#endif
        {
            outcomes.apply();
        }
        if (meta.outcome == OUTCOME_PASSED_DOWN && (hdr.ina.flags & INA_FLAG_REPLAY) != 0) {
            if (!children.apply().hit) {
                lose_way();
            }
        }
        ways.apply();
        if (meta.outcome == OUTCOME_ABSORBED || meta.outcome == OUTCOME_COMPLETED
            OR_OUTCOME(OUTCOME_UP) OR_OUTCOME(OUTCOME_JOINED_AND_FLUSHED)) {
            count_contribution();
        }
        if (meta.outcome == OUTCOME_COMPLETED OR_OUTCOME(OUTCOME_UP)) {
            count_result();
        } else if (meta.outcome == OUTCOME_REPLAYED OR_OUTCOME(OUTCOME_UP_AGAIN)
                   OR_OUTCOME(OUTCOME_FLUSHED)) {
            count_replay();
        } else if (meta.outcome == OUTCOME_DUPLICATE) {
            count_duplicate();
        } else if (meta.outcome == OUTCOME_STALE) {
            count_stale();
        } else if (meta.outcome == OUTCOME_PASSED_DOWN || meta.outcome == OUTCOME_ASTRAY) {
            count_passed_down();
        }
#ifdef MODE_SHARED
        if (meta.outcome == OUTCOME_JOINED_AND_FLUSHED || meta.outcome == OUTCOME_FLUSHED) {
            count_flush();
        } else if (meta.outcome == OUTCOME_COLLISION) {
            count_collision();
        } else if (meta.outcome == OUTCOME_BYPASSED) {
            count_bypassed();
        } else if (meta.outcome == OUTCOME_MISSED) {
            count_missed();
        } else if (meta.outcome == OUTCOME_LATE) {
            count_late();
        }
#endif
        if (meta.outcome == OUTCOME_DUPLICATE || meta.outcome == OUTCOME_STALE
            || meta.outcome == OUTCOME_REFUSED || meta.outcome == OUTCOME_LOST
            || meta.outcome == OUTCOME_ASTRAY) {
            count_drop();
        }
    }
}

// Values are not parsed here, so a copy loses them by being cut off behind its headers. Tofino 1 cannot do that:
// its copies keep them, which is as right, for whoever does not want them leaves them.
#if __TARGET_TOFINO__ == 1
#define KEEP_STRIPS
#define FIND_STRIPS
#else
#define KEEP_STRIPS                                                           \
        meta.way = way;                                                       \
        meta.off_way = hdr.ina.path & way_mask;                               \
        meta.strips_on = strips_on;                                           \
        meta.strips_off = strips_off;
#define FIND_STRIPS                                                           \
        look_where();                                                         \
        strips.apply();
#define BARE_FRAME_BYTES (ETHERNET_BYTES + EMPTY_IP_BYTES)
#define STRIPS_OF(shape, bit)                                                 \
            (shape, 0, bit &&& bit, _): strip();                              \
            (shape, 0, _, _): keep();                                         \
            (shape, _, _, bit &&& bit): strip();
#endif

control Address(inout headers_t hdr, inout egress_metadata_t meta,
                in egress_intrinsic_metadata_t eg_intr_md,
                inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    DIRECT_COUNTER(receiver_results)
    JOB_COUNTER(job_unaddressed)

    // See v1model/distribute.p4 for why the addresses turn round and the UDP checksum ends, and udp_encap.p4 for
    // what copies lose their values.
    action address(bit<48> dst_mac, bit<32> dst_addr, bit<16> dst_port, bit<24> way,
                   bit<24> way_mask, bit<4> strips_on, bit<4> strips_off) {
        receiver_results.count();
        hdr.ethernet.src_mac = hdr.ethernet.dst_mac;
        hdr.ethernet.dst_mac = dst_mac;
        hdr.ipv4.src_addr = hdr.ipv4.dst_addr;
        hdr.ipv4.dst_addr = dst_addr;
        hdr.udp.dst_port = dst_port;
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = INA_UDP_PORT;
        hdr.udp.checksum = 0;
        KEEP_STRIPS
    }
#if __TARGET_TOFINO__ != 1
    action look_where() { meta.off_way = meta.off_way ^ meta.way; } // 0: on the owner's way
    action keep() {}
    action strip() {
        hdr.ina.value_count = 0;
        hdr.udp.length_bytes = EMPTY_UDP_BYTES;
        hdr.ipv4.total_bytes = EMPTY_IP_BYTES;
        eg_dprsr_md.mtu_trunc_len = (bit<14>)BARE_FRAME_BYTES;
    }
    table strips {
        key = {
            hdr.ina.shape: ternary @name("shape");
            meta.off_way: ternary @name("off_way");
            meta.strips_on: ternary @name("strips_on");
            meta.strips_off: ternary @name("strips_off");
        }
        actions = { strip; keep; }
        const entries = {
            STRIPS_OF(0, 1)
            STRIPS_OF(1, 2)
            STRIPS_OF(2, 4)
            STRIPS_OF(3, 8)
        }
        size = 12;
        const default_action = keep();
    }
#endif
    // A sum goes up as the contribution of this switch.
    action sign() {
        hdr.ina.worker = hdr.bridge.own_worker;
        hdr.ina.level = hdr.bridge.own_level;
        hdr.ina.contributors = hdr.bridge.worker_bit;
    }
#ifdef MODE_SHARED
    action sign_alone() {
        hdr.ina.worker = hdr.bridge.own_worker;
        hdr.ina.level = hdr.bridge.own_level;
    }
#endif
    action unaddressed() {
        eg_dprsr_md.drop_ctl = 1;
    }
    action count_unaddressed() { job_unaddressed.count(hdr.bridge.job_index); }

    // Copy number r of a multicast group is for child r - 1; 0 is the only one, whose worker Distribute
    // has found.
    action number_copy() { hdr.ina.worker = eg_intr_md.egress_rid[7:0]; }
    action from_zero() { hdr.ina.worker = hdr.ina.worker - 1; }

    table receivers {
        key = {
            hdr.ina.job: exact @name("job");
            hdr.ina.worker: exact @name("worker");
        }
        size = MEMBERS_TOTAL;
        counters = receiver_results;
        actions = { address; @defaultonly unaddressed; }
        const default_action = unaddressed();
    }

    apply {
        if (eg_intr_md.egress_rid != 0) {
            number_copy();
            from_zero();
        }
        if (!receivers.apply().hit) {
            count_unaddressed();
        }
        FIND_STRIPS
        if (hdr.bridge.pass == PASS_SUM) {
            sign();
        }
#ifdef MODE_SHARED
        else if (hdr.bridge.pass == PASS_UP) {
            sign_alone();
        }
#endif
    }
}

#endif // INA_TOFINO_DISTRIBUTE_P4
