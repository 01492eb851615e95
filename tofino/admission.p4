// Admission: a packet counts only if it is whole, and from where the controller said.
//
// Everything that a packet is asked is looked up in the first stage; Slots starts in the second. So the
// verdict is split: IS_CONTRIBUTION(meta) tells Slots, `verdict` finds the reason (INA_DROP_*, the first that
// fails) meanwhile. Tofino's ingress does not know a frame's length: bytes behind the IP packet are not
// refused here as on v1model. No receiver looks at them.

#ifndef INA_TOFINO_ADMISSION_P4
#define INA_TOFINO_ADMISSION_P4

#define IS_CONTRIBUTION(meta) ((meta).sender == SENDER_CHILD && (meta).slot_room != 0)
// A result that frees a slot of mode `shared` on its way down.
#define IS_RELEASE(meta)                                                      \
    ((meta).sender == SENDER_PARENT && (meta).is_shared == 1 && (meta).slot_room != 0)

control Admission(inout headers_t hdr, inout ina_metadata_t meta,
                  in ingress_intrinsic_metadata_t ig_intr_md,
                  in ingress_intrinsic_metadata_from_parser_t ig_prsr_md) {
    DIRECT_COUNTER(member_packets)

    action well_formed() { meta.formed = 1; }
    action ill_formed(bit<8> reason) { meta.drop_reason = reason; }

    table form {
        key = {
            meta.harvest: ternary @name("harvest");
            hdr.values.isValid(): ternary @name("values");
            hdr.ina.isValid(): ternary @name("ina");
            hdr.ipv4.more_fragments: ternary @name("more_fragments");
            hdr.ipv4.total_bytes: ternary @name("total_bytes");
            hdr.udp.length_bytes: ternary @name("length_bytes");
            hdr.ina.value_count: ternary @name("value_count");
            meta.checksum_error: ternary @name("checksum_error");
            hdr.ina.version: ternary @name("version");
            hdr.ina.kind: ternary @name("kind");
        }
        actions = { well_formed; ill_formed; }
        const entries = {
            (1, _, _, _, _, _, _, _, _, _): well_formed(); // was, when it came first
            (0, true, true, 0, FULL_IP_BYTES, FULL_UDP_BYTES, VALUES_PER_PACKET, false, INA_VERSION, INA_KIND_CONTRIBUTION): well_formed();
            (0, true, true, 0, FULL_IP_BYTES, FULL_UDP_BYTES, VALUES_PER_PACKET, false, INA_VERSION, INA_KIND_RESULT): well_formed();
            (0, _, true, 0, EMPTY_IP_BYTES, EMPTY_UDP_BYTES, 0, false, INA_VERSION, INA_KIND_CONTRIBUTION): well_formed();
            (0, _, true, 0, EMPTY_IP_BYTES, EMPTY_UDP_BYTES, 0, false, INA_VERSION, INA_KIND_RESULT): well_formed();
            (0, true, true, 0, FULL_IP_BYTES, FULL_UDP_BYTES, VALUES_PER_PACKET, false, INA_VERSION, _): ill_formed(INA_DROP_KIND);
            (0, _, true, 0, EMPTY_IP_BYTES, EMPTY_UDP_BYTES, 0, false, INA_VERSION, _): ill_formed(INA_DROP_KIND);
            (0, true, true, 0, FULL_IP_BYTES, FULL_UDP_BYTES, VALUES_PER_PACKET, false, _, _): ill_formed(INA_DROP_VERSION);
            (0, _, true, 0, EMPTY_IP_BYTES, EMPTY_UDP_BYTES, 0, false, _, _): ill_formed(INA_DROP_VERSION);
        }
        size = 9;
        const default_action = ill_formed(INA_DROP_MALFORMED);
    }

    // first_slot + slots must not exceed SLOTS_TOTAL; epochs are never used twice on one switch.
    action admit_job(bit<32> epoch, bit<32> first_slot, bit<16> slots, bit<32> full_bitmap,
                     bit<16> group, bit<16> job_index) {
        meta.known = 1;
        meta.epoch = epoch;
        meta.slot_index = first_slot[SLOT_INDEX_BITS - 1:0] + hdr.ina.slot;
        meta.slot_room = slots |-| hdr.ina.slot;
        meta.full_bitmap = full_bitmap;
        meta.group = group;
        hdr.bridge.job_index = job_index;
    }
    // The parent may be behind a port of any pipe: its results touch no register. What this switch is
    // to its parent crosses to egress, where headers have room.
    action admit_inner_job(bit<32> epoch, bit<32> first_slot, bit<16> slots, bit<32> full_bitmap,
                           bit<16> group, bit<16> job_index, bit<9> parent_port,
                           bit<8> own_worker, bit<32> own_bit, bit<4> own_level,
                           bit<24> path_mask) {
        meta.parent_port = parent_port;
        meta.way = hdr.ina.path & path_mask;
        meta.is_inner = 1;
        hdr.bridge.own_worker = own_worker;
        hdr.bridge.own_level = own_level;
        hdr.bridge.worker_bit = own_bit;
        admit_job(epoch, first_slot, slots, full_bitmap, group, job_index);
    }
#ifdef MODE_SHARED
    // lead_us: see Claims. On Tofino 1 there is a slot here for each at the aggregator, and age_us is the
    // build's PATIENCE.
    action admit_shared_job(bit<32> epoch, bit<32> first_slot, bit<16> slots, bit<32> full_bitmap,
                            bit<16> group, bit<16> job_index, bit<9> parent_port,
                            bit<8> own_worker, bit<4> own_level, bit<24> path_mask,
                            bit<16> lane_mask, bit<16> claimable, bit<32> age_us,
                            bit<32> lead_us) {
        meta.known = 1;
        meta.epoch = epoch;
#if __TARGET_TOFINO__ == 1
        meta.slot_index = first_slot[SLOT_INDEX_BITS - 1:0] + hdr.ina.slot;
#else
        meta.slot_index = first_slot[SLOT_INDEX_BITS - 1:0]; // of lane 0
        meta.lane = hdr.ina.slot & lane_mask;
        meta.claimable = claimable;
#endif
        meta.slot_room = slots |-| hdr.ina.slot;
        meta.full_bitmap = full_bitmap;
        meta.group = group;
        hdr.bridge.job_index = job_index;
        meta.parent_port = parent_port;
        meta.way = (hdr.ina.path & path_mask);
        meta.is_inner = 1;
        hdr.bridge.own_worker = own_worker;
        hdr.bridge.own_level = own_level;
        meta.is_shared = 1;
        meta.age_limit = age_us;
    }
#define SHARED_JOB_ACTION admit_shared_job;
#else
#define SHARED_JOB_ACTION
#endif
    action unknown_job() {}

    table jobs {
        key = {
            hdr.ina.job: exact @name("job");
            hdr.ina.epoch: exact @name("epoch");
        }
        size = JOBS_TOTAL;
        actions = { admit_job; admit_inner_job; SHARED_JOB_ACTION @defaultonly unknown_job; }
        const default_action = unknown_job();
    }

    action admit_member(bit<32> worker_bit) {
        member_packets.count();
        meta.sender = SENDER_CHILD;
        meta.worker_bit = worker_bit;
    }
    action admit_parent() {
        member_packets.count();
        meta.sender = SENDER_PARENT;
    }
    action unknown_member() {}

    table members {
        key = {
            ig_intr_md.ingress_port: exact @name("ingress_port");
            hdr.ipv4.src_addr: exact @name("src_addr");
            hdr.udp.src_port: exact @name("src_port");
            hdr.ina.worker: exact @name("worker");
            hdr.ina.job: exact @name("job");
            hdr.ina.epoch: exact @name("epoch");
            hdr.ina.kind: exact @name("kind");
        }
        size = MEMBERS_TOTAL;
        counters = member_packets;
        actions = { admit_member; admit_parent; @defaultonly unknown_member; }
        const default_action = unknown_member();
    }

    action admit() { meta.access = ACCESS_STALE; } // until Contribution finds that it is not
    action admit_down() { meta.access = ACCESS_DOWN; }
    action keep_reason() {}
    action refuse(bit<8> reason) { meta.drop_reason = reason; }

    table verdict {
        key = {
            meta.formed: ternary @name("formed");
            meta.known: ternary @name("known");
            meta.sender: ternary @name("sender");
            meta.slot_room: ternary @name("slot_room");
        }
        actions = { admit; admit_down; refuse; keep_reason; }
        const entries = {
            (0, _, _, _): keep_reason(); // of `form`
            (1, 0, _, _): refuse(INA_DROP_JOB);
            (1, 1, SENDER_UNKNOWN, _): refuse(INA_DROP_MEMBER);
            (1, 1, _, 0): refuse(INA_DROP_SLOT);
            (1, 1, SENDER_PARENT, _): admit_down();
        }
        size = 5;
        const default_action = admit();
    }

    apply {
        switch (form.apply().action_run) {
            well_formed: {
                if (jobs.apply().hit) {
                    if (meta.harvest == 0) {
                        members.apply(); // the second pass is admitted by its bridge header
                    }
                }
            }
        }
        verdict.apply();
    }
}

#endif // INA_TOFINO_ADMISSION_P4
