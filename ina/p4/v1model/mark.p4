// Mark: tell whom it concerns that a queue of this switch is long (ECN). Results and ordinary traffic
// share queues, so both are marked.

#ifndef INA_MARK_P4
#define INA_MARK_P4

control Mark(inout headers_t hdr, inout ina_metadata_t meta,
             inout standard_metadata_t standard_metadata) {
    counter(JOBS_TOTAL, CounterType.packets_and_bytes) job_ecn_marks;
    bit<19> threshold_packets;

    action mark_above(bit<19> packets) { threshold_packets = packets; }

    // No key: the controller sets the default action. As compiled, nothing is marked.
    table ecn_threshold {
        actions = { mark_above; }
        default_action = mark_above(0x7FFFF);
        size = 1;
    }

    apply {
        ecn_threshold.apply();
        if (standard_metadata.enq_qdepth > threshold_packets) {
            if (hdr.ipv4.isValid() && hdr.ipv4.ecn != ECN_NOT_ECT) {
                bit<8> first_byte = hdr.ipv4.version ++ hdr.ipv4.ihl;
                bit<16> word_before = first_byte ++ hdr.ipv4.dscp ++ hdr.ipv4.ecn;
                hdr.ipv4.ecn = ECN_CE;
                hdr.ipv4.checksum = checksum_after(hdr.ipv4.checksum, word_before,
                                                   first_byte ++ hdr.ipv4.dscp ++ ECN_CE);
            }
            if (meta.is_ours == 1) {
                // In our own header too: a host's UDP socket need not look into IP headers. Not in what
                // passes through: a UDP checksum may cover it.
                hdr.ina.flags = hdr.ina.flags | INA_FLAG_ECN;
                job_ecn_marks.count((bit<32>)meta.job_index);
            }
        }
    }
}

#endif // INA_MARK_P4
