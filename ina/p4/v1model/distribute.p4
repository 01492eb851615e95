// Distribute: what becomes of the packet. In: the result to all, the stored result to one, or nothing
// (Distribute). Out: each copy gets its receiver's addresses (Address).
//
// In a tree of switches a complete sum goes up to the parent where the root makes the result of it, and a
// repeated contribution to it sends it up again: so one rule mends what was lost below, going up and
// coming down (docs/protocol.md, "Trees"). The parent's result goes down to all children, or to the one that
// asked; nothing of it is kept.

#ifndef INA_DISTRIBUTE_P4
#define INA_DISTRIBUTE_P4

control Distribute(inout headers_t hdr, inout ina_metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    // By job: every admitted packet is counted in exactly one of contributions, duplicates, replays,
    // stale and passed_down; a contribution that completes a sum also in results. Replays go to one
    // worker, or up again.
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_contributions;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_results;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_replays;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_duplicates;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_stale;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_passed_down;
#ifdef MODE_SHARED
    // Of jobs that share slots: what a resend took along before it was complete; and contributions that
    // went on alone, in place of stale ones, for the slot was another job's, the lane has none, the round
    // is over here, or a resend found no sum.
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_flushes;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_collisions;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_bypassed;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_late;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_missed;
    // Incomplete sums that others' packets have taken up, which wanted the slot.
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_evictions;
#endif
    // By INA_DROP_*: why packets to the switch were dropped, of all jobs and of none.
    counter(DROP_REASONS, CounterType.packets_and_bytes) drops;

    action drop() { mark_to_drop(standard_metadata); }

    // What says who the packet is from, and whom it is for, stays as it came until egress: the soft switch
    // reads the keys of Admission where they stand.
    action make_result() {
        meta.kind = INA_KIND_RESULT;
        hdr.ina.flags = meta.flags; // the slot's; RESEND and others of this packet end here
        hdr.ina.contributors = meta.bitmap;
    }
    action to_all() { standard_metadata.mcast_grp = meta.group; }
    action to_sender() {
        hdr.ina.flags = hdr.ina.flags | INA_FLAG_REPLAY;
        meta.receiver = hdr.ina.worker;
        meta.worker = hdr.ina.worker;
        standard_metadata.egress_spec = PORT_OF_SENDER;
    }
    // Still a contribution: of this switch.
    action to_parent() {
        meta.kind = INA_KIND_CONTRIBUTION;
        hdr.ina.flags = meta.flags;
        hdr.ina.contributors = meta.own_bit;
        hdr.ina.level = meta.own_level;
        meta.receiver = INA_PARENT;
        meta.worker = meta.own_worker;
        standard_metadata.egress_spec = meta.parent_port;
    }
#ifdef MODE_SHARED
    // Up, as what it is: a contribution of these. A resend is one at the next switch, too.
    action holds(bit<32> workers) {
        meta.own_bit = workers;
        meta.flags = meta.flags | (hdr.ina.flags & INA_FLAG_RESEND);
    }
    // The sum that was in the slot: a contribution of this switch to the other job. Who takes a slot over wants it.
    action to_parent_of_owner() {
        meta.kind = INA_KIND_CONTRIBUTION;
        hdr.ina.flags = meta.flags | INA_FLAG_WANTED;
        hdr.ina.contributors = meta.before;
        hdr.ina.level = meta.owner_level;
        meta.receiver = INA_PARENT;
        meta.worker = meta.owner_worker;
        standard_metadata.egress_spec = meta.owner_port;
    }
    action says_collision() { meta.flags = meta.flags | INA_FLAG_COLLISION; }
#endif
    action to_child(bit<9> port, bit<8> worker) {
        meta.receiver = worker;
        meta.worker = worker;
        standard_metadata.egress_spec = port;
    }
    // way: the path's bits for this switch (admit_inner_job).
    table children {
        key = {
            hdr.ina.job: exact @name("job");
            meta.way: exact @name("way");
        }
        actions = { to_child; @defaultonly drop; }
        const default_action = drop();
        size = MEMBERS_TOTAL;
    }

    apply {
#ifdef MODE_SHARED
        if (meta.access == ACCESS_EVICT) {
            job_contributions.count((bit<32>)meta.job_index);
            job_evictions.count((bit<32>)meta.owner_index);
            to_parent_of_owner();
        } else if (meta.is_shared == 1 && meta.access != ACCESS_REFUSED && meta.access != ACCESS_DOWN) {
            bit<1> leaves = meta.is_flush;
            if (meta.access == ACCESS_STALE) {
                leaves = 1;
                holds(meta.worker_bit);
                if (meta.collides == 1) {
                    says_collision();
                    job_collisions.count((bit<32>)meta.job_index);
                } else if (meta.lane >= meta.claimable) {
                    job_bypassed.count((bit<32>)meta.job_index);
                } else if (meta.is_resend == 1) {
                    job_missed.count((bit<32>)meta.job_index);
                } else {
                    job_late.count((bit<32>)meta.job_index);
                }
            } else {
                holds(meta.bitmap);
                if (meta.access == ACCESS_READ) {
                    if (meta.is_flush == 1) {
                        job_replays.count((bit<32>)meta.job_index);
                    } else {
                        job_duplicates.count((bit<32>)meta.job_index);
                        drops.count((bit<32>)INA_DROP_DUPLICATE);
                    }
                } else {
                    job_contributions.count((bit<32>)meta.job_index);
                    if (meta.missing == 0) {
                        leaves = 1;
                        job_results.count((bit<32>)meta.job_index);
                    }
                }
                if (meta.is_flush == 1 && meta.missing != 0) {
                    job_flushes.count((bit<32>)meta.job_index);
                }
            }
            if (leaves == 1) {
                to_parent();
            } else {
                drop();
            }
        } else
#endif
        if (meta.access == ACCESS_TAKE || meta.access == ACCESS_JOIN) {
            job_contributions.count((bit<32>)meta.job_index);
            if (meta.missing == 0) {
                job_results.count((bit<32>)meta.job_index);
                if (meta.is_inner == 1) {
                    to_parent();
                } else {
                    make_result();
                    to_all();
                }
            } else {
                drop(); // absorbed: its values are in the slot
            }
        } else if (meta.access == ACCESS_READ && meta.missing == 0) {
            job_replays.count((bit<32>)meta.job_index);
            if (meta.is_inner == 1) {
                to_parent();
            } else {
                make_result();
                to_sender();
            }
        } else if (meta.access == ACCESS_DOWN) {
            job_passed_down.count((bit<32>)meta.job_index);
            meta.kind = INA_KIND_RESULT;
            if ((hdr.ina.flags & INA_FLAG_REPLAY) == 0) {
                to_all();
            } else if (!children.apply().hit) {
                drops.count((bit<32>)INA_DROP_MEMBER); // its path leads to nobody here
            }
        } else {
            if (meta.access == ACCESS_READ) {
                job_duplicates.count((bit<32>)meta.job_index);
                meta.drop_reason = INA_DROP_DUPLICATE;
            } else if (meta.access == ACCESS_STALE) {
                job_stale.count((bit<32>)meta.job_index);
                meta.drop_reason = INA_DROP_STALE;
            }
            drops.count((bit<32>)meta.drop_reason);
            drop();
        }
    }
}

control Address(inout headers_t hdr, inout ina_metadata_t meta,
                inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) receiver_results;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_unaddressed;

    ADDRESS_ACTION
#ifdef MODE_EVICTS
    // Nobody asks for the result: the path leads to no child.
    action speak_for_owner() {
        hdr.ina.job = meta.owner_job;
        hdr.ina.epoch = (bit<16>)meta.former;
        hdr.ina.seq = meta.former_seq;
        hdr.ina.slot = meta.said[31:16];
        hdr.ina.exponent = meta.said[15:8];
        hdr.ina.value_type = meta.said[7:4];
        hdr.ina.path = 0xFFFFFF;
        hdr.ina.copy = 0;
        hdr.ina.shape = INA_SHAPE_SUM;
    }
#endif
    action unaddressed() {
        job_unaddressed.count((bit<32>)meta.job_index);
        mark_to_drop(standard_metadata);
    }

    table receivers {
        key = {
            hdr.ina.job: exact @name("job");
            meta.receiver: exact @name("worker");
            RECEIVER_KEY
        }
        actions = { address; @defaultonly unaddressed; }
        const default_action = unaddressed();
        counters = receiver_results;
        size = MEMBERS_TOTAL;
    }

    apply {
        // Copy number r of a multicast group is for child r - 1; number 0 is the only one.
        if (standard_metadata.egress_rid != 0) {
            meta.receiver = (bit<8>)(standard_metadata.egress_rid - 1);
            meta.worker = meta.receiver;
        }
        hdr.ina.worker = meta.worker;
        hdr.ina.kind = meta.kind;
#ifdef MODE_EVICTS
        if (meta.access == ACCESS_EVICT) {
            speak_for_owner();
        }
#endif
        BEFORE_ADDRESS
        receivers.apply();
        AFTER_ADDRESS
    }
}

#endif // INA_DISTRIBUTE_P4
