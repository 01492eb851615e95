// Distribute: what becomes of the packet. In: the result to all, the stored result to one, or nothing
// (Distribute). Out: each copy gets its receiver's addresses (Address).

#ifndef INA_DISTRIBUTE_P4
#define INA_DISTRIBUTE_P4

control Distribute(inout headers_t hdr, inout ina_metadata_t meta,
                   inout standard_metadata_t standard_metadata) {
    // By job: every admitted packet is counted in exactly one of contributions, duplicates, replays and
    // stale; a contribution that completes a sum also in results.
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_contributions;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_results;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_replays;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_duplicates;
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_stale;
    // By INA_DROP_*: why packets to the switch were dropped, of all jobs and of none.
    counter(INA_DROP_REASONS, CounterType.packets_and_bytes) drops;

    action drop() { mark_to_drop(standard_metadata); }

    action make_result() {
        hdr.ina.kind = INA_KIND_RESULT;
        hdr.ina.flags = meta.flags; // the slot's; RESEND and others of this packet end here
        hdr.ina.contributors = meta.bitmap;
    }
    action to_all() { standard_metadata.mcast_grp = meta.group; }
    action to_sender() { standard_metadata.egress_spec = standard_metadata.ingress_port; }

    apply {
        if (meta.access == ACCESS_TAKE || meta.access == ACCESS_JOIN) {
            job_contributions.count((bit<32>)meta.job_index);
            if (meta.missing == 0) {
                job_results.count((bit<32>)meta.job_index);
                make_result();
                to_all();
            } else {
                drop(); // absorbed: its values are in the slot
            }
        } else if (meta.access == ACCESS_READ && meta.missing == 0) {
            job_replays.count((bit<32>)meta.job_index);
            make_result();
            to_sender();
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

    // The result comes from where the contribution went: worker and switch talk as two sockets do.
    // UDP checksum 0 (none, RFC 768): it covers the values, and a switch that adds in passing has not
    // the whole payload at hand when it writes the header. Links check their frames.
    action address(bit<48> dst_mac, bit<32> dst_addr, bit<16> dst_port) {
        hdr.ethernet.src_mac = hdr.ethernet.dst_mac;
        hdr.ethernet.dst_mac = dst_mac;
        hdr.ipv4.src_addr = hdr.ipv4.dst_addr;
        hdr.ipv4.dst_addr = dst_addr;
        hdr.ipv4.ttl = 64;
        hdr.udp.src_port = INA_UDP_PORT;
        hdr.udp.dst_port = dst_port;
        hdr.udp.checksum = 0;
    }
    action unaddressed() {
        job_unaddressed.count((bit<32>)meta.job_index);
        mark_to_drop(standard_metadata);
    }

    table receivers {
        key = {
            hdr.ina.job: exact @name("job");
            hdr.ina.worker: exact @name("worker");
        }
        actions = { address; @defaultonly unaddressed; }
        const default_action = unaddressed();
        counters = receiver_results;
        size = MEMBERS_TOTAL;
    }

    apply {
        // Copy number r of a multicast group is for worker r - 1; a replay (0) for its sender.
        if (standard_metadata.egress_rid != 0) {
            hdr.ina.worker = (bit<8>)(standard_metadata.egress_rid - 1);
        }
        receivers.apply();
    }
}

#endif // INA_DISTRIBUTE_P4
