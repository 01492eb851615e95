// Admission: a packet counts only if it is whole, and from where the controller said.
//
// The order of the checks is that of INA_DROP_*: the first that fails is counted. Nothing is answered, so
// that a forged source address gains nothing.

#ifndef INA_ADMISSION_P4
#define INA_ADMISSION_P4

control Admission(inout headers_t hdr, inout ina_metadata_t meta,
                  inout standard_metadata_t standard_metadata) {
    direct_counter(CounterType.packets_and_bytes) member_packets;

    action refuse(bit<8> reason) {
        meta.access = ACCESS_REFUSED;
        meta.drop_reason = reason;
    }

    // This switch is the root of the job's tree. first_slot + slots must not exceed SLOTS_TOTAL; epochs
    // are never used twice on one switch.
    action admit_job(bit<32> epoch, bit<32> first_slot, bit<16> slots, bit<32> full_bitmap,
                     bit<16> group, bit<16> job_index) {
        meta.epoch = epoch;
        meta.slot_index = first_slot + (bit<32>)hdr.ina.slot;
        meta.job_slots = slots;
        meta.full_bitmap = full_bitmap;
        meta.group = group;
        meta.job_index = job_index;
    }
    // This switch has a parent, behind parent_port, and is its child number own_worker, with the bit
    // own_bit; own_level: 1 if all its own children are workers. path_mask: which bits of a path say to
    // which child of this switch it leads.
    action admit_inner_job(bit<32> epoch, bit<32> first_slot, bit<16> slots, bit<32> full_bitmap,
                           bit<16> group, bit<16> job_index, bit<9> parent_port,
                           bit<8> own_worker, bit<32> own_bit, bit<4> own_level,
                           bit<24> path_mask) {
        admit_job(epoch, first_slot, slots, full_bitmap, group, job_index);
        meta.is_inner = 1;
        meta.parent_port = parent_port;
        meta.own_worker = own_worker;
        meta.own_bit = own_bit;
        meta.own_level = own_level;
        meta.way = hdr.ina.path & path_mask;
    }
#ifdef MODE_SHARED
    // Slots here are shared with other jobs, one to a lane: the lanes below `claimable` may claim theirs,
    // first_slot + lane. What they sum goes up, and what finds its slot taken; `slots` are those at the
    // aggregator, 2W; lane_mask is W - 1. It takes another's slot of which nothing was heard for age_us,
    // and its own seem to be heard of lead_us earlier: with both larger, others come before it.
    action admit_shared_job(bit<32> epoch, bit<32> first_slot, bit<16> slots, bit<32> full_bitmap,
                            bit<16> group, bit<16> job_index, bit<9> parent_port,
                            bit<8> own_worker, bit<4> own_level, bit<24> path_mask,
                            bit<16> lane_mask, bit<16> claimable, bit<32> age_us,
                            bit<32> lead_us) {
        admit_inner_job(epoch, first_slot, slots, full_bitmap, group, job_index, parent_port,
                        own_worker, 0, own_level, path_mask);
        meta.is_shared = 1;
        meta.lane = hdr.ina.slot & lane_mask;
        meta.slot_index = first_slot + (bit<32>)meta.lane;
        meta.claimable = claimable;
        meta.age_limit = age_us;
        meta.lead = lead_us;
    }
#define SHARED_JOB_ACTION admit_shared_job;
#else
#define SHARED_JOB_ACTION
#endif
#ifdef MODE_STREAM
    // The last word of the job's packets is no value: a slot keeps the least of a round.
    action admit_stream_job(bit<32> epoch, bit<32> first_slot, bit<16> slots,
                            bit<32> full_bitmap, bit<16> group, bit<16> job_index) {
        admit_job(epoch, first_slot, slots, full_bitmap, group, job_index);
        meta.is_stream = 1;
    }
    action admit_inner_stream_job(bit<32> epoch, bit<32> first_slot, bit<16> slots,
                                  bit<32> full_bitmap, bit<16> group, bit<16> job_index,
                                  bit<9> parent_port, bit<8> own_worker, bit<32> own_bit,
                                  bit<4> own_level, bit<24> path_mask) {
        admit_inner_job(epoch, first_slot, slots, full_bitmap, group, job_index, parent_port,
                        own_worker, own_bit, own_level, path_mask);
        meta.is_stream = 1;
    }
#define STREAM_JOB_ACTIONS admit_stream_job; admit_inner_stream_job;
#define HAS_VALUES (hdr.values.isValid() || hdr.next_block.isValid())
#else
#define STREAM_JOB_ACTIONS
#define HAS_VALUES hdr.values.isValid()
#endif
#ifdef ENCAP_ROCE
    Icrc() icrc;
#endif
    action unknown_job() { refuse(INA_DROP_JOB); }

    action admit_member(bit<32> worker_bit AND_OF_SENDER) {
        meta.worker_bit = worker_bit;
        KEEP_OF_SENDER
        meta.access = ACCESS_STALE; // until Contribution finds that it is not
    }
#ifdef MODE_SHARED
    // A switch that says whom its packet holds (`contributors`): some of those who send to it.
    action admit_set(bit<32> worker_bits) {
        meta.worker_bit = hdr.ina.contributors;
        meta.strangers = hdr.ina.contributors & ~worker_bits;
        meta.access = ACCESS_STALE;
    }
#define SET_MEMBER_ACTION admit_set;
#else
#define SET_MEMBER_ACTION
#endif
    action admit_parent(OF_SENDER) {
        meta.access = ACCESS_DOWN;
        KEEP_OF_SENDER
    }
    action unknown_member() { refuse(INA_DROP_MEMBER); }

    table jobs {
        key = {
            hdr.ina.job: exact @name("job");
            hdr.ina.epoch: exact @name("epoch"); // low 16 bits
        }
        actions = {
            admit_job; admit_inner_job; SHARED_JOB_ACTION STREAM_JOB_ACTIONS @defaultonly unknown_job;
        }
        const default_action = unknown_job();
        size = JOBS_TOTAL;
    }

    // The job's neighbours: contributions count from children, results from the parent. The key has the
    // kind, so neither can speak as the other.
    table members {
        key = {
            standard_metadata.ingress_port: exact @name("ingress_port");
            hdr.ipv4.src_addr: exact @name("src_addr");
            SENDER_KEY
            hdr.ina.job: exact @name("job");
            hdr.ina.epoch: exact @name("epoch");
            hdr.ina.worker: exact @name("worker");
            hdr.ina.kind: exact @name("kind");
        }
        actions = { admit_member; SET_MEMBER_ACTION admit_parent; @defaultonly unknown_member; }
        const default_action = unknown_member();
        counters = member_packets;
        size = MEMBERS_TOTAL;
    }

    apply {
#ifdef ENCAP_ROCE
        if (hdr.icrc.isValid()) {
            icrc.apply(hdr, meta);
        }
#endif
        // Frame, IP and UDP must end together: bytes behind the values would travel on in the result.
        if (!hdr.ina.isValid()
            || hdr.ipv4.more_fragments == 1
            || hdr.udp.length_bytes
                   != UDP_BYTES + ENCAP_BYTES + INA_HEADER_BYTES + ((bit<16>)hdr.ina.value_count << 2)
            || hdr.ipv4.total_bytes != IPV4_BYTES + hdr.udp.length_bytes
            || standard_metadata.packet_length != (bit<32>)(ETHERNET_BYTES + hdr.ipv4.total_bytes)
            || (hdr.ina.value_count != 0 && !HAS_VALUES) // not the build's constant
            || standard_metadata.checksum_error == 1
            NOT_IN_ENCAP) {
            refuse(INA_DROP_MALFORMED);
        }
#ifdef ENCAP_ROCE
        else if (meta.icrc != hdr.icrc.crc) {
            refuse(INA_DROP_ICRC);
        }
#endif
        else if (hdr.ina.version != INA_VERSION) {
            refuse(INA_DROP_VERSION);
        } else if (hdr.ina.kind != INA_KIND_CONTRIBUTION && hdr.ina.kind != INA_KIND_RESULT) {
            refuse(INA_DROP_KIND);
        } else if (jobs.apply().hit) {
#ifdef MODE_STREAM
            if (hdr.next_block.isValid() && meta.is_stream == 0) {
                refuse(INA_DROP_MALFORMED); // the job has no such packets
            } else
#endif
            if (members.apply().hit) {
                if (hdr.ina.slot >= meta.job_slots) {
                    refuse(INA_DROP_SLOT);
                }
#ifdef MODE_SHARED
                else if (meta.access == ACCESS_STALE
                         && (meta.worker_bit == 0 || meta.strangers != 0)) {
                    refuse(INA_DROP_MEMBER); // a set of nobody, or of others than send to it
                }
#endif
            }
        }
    }
}

#endif // INA_ADMISSION_P4
