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
    // By INA_DROP_*: why packets to the switch were dropped, of all jobs and of none.
    COUNTER(bit<8>, drops, INA_DROP_REASONS)

    action come_out(outcome_t outcome) { meta.outcome = outcome; }
    action come_out_dropped(outcome_t outcome, bit<8> reason) {
        meta.outcome = outcome;
        meta.drop_reason = reason;
    }

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
            (OUTCOME_HARVESTED, PASS_HARVEST_ALL, _, 0, _): to_all();         \
            (OUTCOME_HARVESTED, _, _, 0, _): to_sender();                     \
            (OUTCOME_HARVESTED, _, _, 1, _): to_parent();                     \
            (OUTCOME_COMPLETED, _, VALUES_PER_PACKET, _, _): again_for_all(); \
            (OUTCOME_REPLAYED, _, VALUES_PER_PACKET, _, _): again_for_sender();
#define WAYS_SIZE 11
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
        actions = { to_all; to_sender; to_parent; down_to_all; down_to_one; WAYS_ACTIONS drop; }
        const entries = {
            WAYS_ENTRIES
            (OUTCOME_COMPLETED, _, _, 0, _): to_all();
            (OUTCOME_COMPLETED, _, _, 1, _): to_parent();
            (OUTCOME_REPLAYED, _, _, 0, _): to_sender();
            (OUTCOME_REPLAYED, _, _, 1, _): to_parent();
            (OUTCOME_PASSED_DOWN, _, _, _, 0 &&& INA_FLAG_REPLAY): down_to_all();
            (OUTCOME_PASSED_DOWN, _, _, _, _): down_to_one();
        }
        size = WAYS_SIZE;
        const default_action = drop();
    }

    apply {
        outcomes.apply();
        if (meta.outcome == OUTCOME_PASSED_DOWN && (hdr.ina.flags & INA_FLAG_REPLAY) != 0) {
            if (!children.apply().hit) {
                lose_way();
            }
        }
        ways.apply();
        if (meta.outcome == OUTCOME_ABSORBED || meta.outcome == OUTCOME_COMPLETED) {
            count_contribution();
        }
        if (meta.outcome == OUTCOME_COMPLETED) {
            count_result();
        } else if (meta.outcome == OUTCOME_REPLAYED) {
            count_replay();
        } else if (meta.outcome == OUTCOME_DUPLICATE) {
            count_duplicate();
        } else if (meta.outcome == OUTCOME_STALE) {
            count_stale();
        } else if (meta.outcome == OUTCOME_PASSED_DOWN || meta.outcome == OUTCOME_ASTRAY) {
            count_passed_down();
        }
        if (meta.outcome == OUTCOME_DUPLICATE || meta.outcome == OUTCOME_STALE
            || meta.outcome == OUTCOME_REFUSED || meta.outcome == OUTCOME_LOST
            || meta.outcome == OUTCOME_ASTRAY) {
            count_drop();
        }
    }
}

control Address(inout headers_t hdr, in egress_intrinsic_metadata_t eg_intr_md,
                inout egress_intrinsic_metadata_for_deparser_t eg_dprsr_md) {
    DIRECT_COUNTER(receiver_results)
    JOB_COUNTER(job_unaddressed)

    // See v1model/distribute.p4 for why the addresses turn round and the UDP checksum ends.
    action address(bit<48> dst_mac, bit<32> dst_addr, bit<16> dst_port) {
        receiver_results.count();
        hdr.ethernet.src_mac = hdr.ethernet.dst_mac;
        hdr.ethernet.dst_mac = dst_mac;
        hdr.ipv4.src_addr = hdr.ipv4.dst_addr;
        hdr.ipv4.dst_addr = dst_addr;
        hdr.udp.dst_port = dst_port;
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = INA_UDP_PORT;
        hdr.udp.checksum = 0;
    }
    // A sum goes up as the contribution of this switch.
    action sign() {
        hdr.ina.worker = hdr.bridge.own_worker;
        hdr.ina.level = hdr.bridge.own_level;
        hdr.ina.contributors = hdr.bridge.worker_bit;
    }
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
        if (hdr.bridge.pass == PASS_SUM) {
            sign();
        }
    }
}

#endif // INA_TOFINO_DISTRIBUTE_P4
