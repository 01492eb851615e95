// Mark: tell whom it concerns that a queue of this switch is long (ECN). Results and ordinary traffic
// share queues, so both are marked.

#ifndef INA_TOFINO_MARK_P4
#define INA_TOFINO_MARK_P4

control Mark(inout headers_t hdr, inout egress_metadata_t meta,
             in egress_intrinsic_metadata_t eg_intr_md) {
    JOB_COUNTER(job_ecn_marks)

    // Tofino's queues count buffer cells (80 bytes on Tofino 1, 176 on Tofino 2), not packets as
    // v1model's do.
    action mark_above(bit<19> packets) {
        meta.threshold[18:0] = packets;
        meta.queue_cells[18:0] = eg_intr_md.enq_qdepth;
    }

    // Saturates at 0: a stage cannot compare two fields, but it can test one for 0.
    action compare() { meta.excess = meta.queue_cells |-| meta.threshold; }

    // No key: the controller sets the default action. As compiled, nothing is marked.
    table ecn_threshold {
        actions = { mark_above; }
        size = 1;
        default_action = mark_above(0x7FFFF);
    }

    // ECN to CE (3), and the checksum (RFC 1624, equation 3): minus what ECN grew by, and the borrow
    // round the end. Results have theirs summed anew by the deparser.
    action mark_ect_1() {
        hdr.ipv4.ecn = ECN_CE;
        hdr.ipv4.checksum = hdr.ipv4.checksum - 2;
    }
    action mark_ect_1_borrow() {
        hdr.ipv4.ecn = ECN_CE;
        hdr.ipv4.checksum = hdr.ipv4.checksum - 3;
    }
    action mark_ect_0() {
        hdr.ipv4.ecn = ECN_CE;
        hdr.ipv4.checksum = hdr.ipv4.checksum - 1;
    }
    action mark_ect_0_borrow() {
        hdr.ipv4.ecn = ECN_CE;
        hdr.ipv4.checksum = hdr.ipv4.checksum - 2;
    }
    table ip_marks {
        key = {
            hdr.ipv4.ecn: ternary @name("ecn");
            hdr.ipv4.checksum: ternary @name("checksum");
        }
        actions = {
            mark_ect_1; mark_ect_1_borrow; mark_ect_0; mark_ect_0_borrow;
            @defaultonly NoAction;
        }
        const entries = {
            (1, 0 &&& 0xFFFE): mark_ect_1_borrow();
            (1, _): mark_ect_1();
            (2, 0): mark_ect_0_borrow();
            (2, _): mark_ect_0();
        }
        size = 4;
        const default_action = NoAction(); // not capable, or marked already
    }

    // In our own header too: a host's UDP socket need not look into IP headers.
    action mark_ina() {
        hdr.ina.flags = hdr.ina.flags | INA_FLAG_ECN;
        job_ecn_marks.count(hdr.bridge.job_index);
    }

    apply {
        ecn_threshold.apply();
        compare();
        if (meta.excess != 0) {
            if (hdr.ipv4.isValid()) {
                ip_marks.apply();
            }
            if (hdr.ina.isValid()) {
                mark_ina();
            }
        }
    }
}

#endif // INA_TOFINO_MARK_P4
