// Expand: a contribution with its last word alone is one of zeros and that word, from here on.
//
// Its worker's block is zero. The sum that it completes, or asks for once more, has all values, so the
// packet must have room for them.

#ifndef INA_EXPAND_P4
#define INA_EXPAND_P4

#define ZERO_STEP(i, ...) hdr.values.v##i = 0;
#define NEXT_STEP(i, ...) hdr.values.v##i = hdr.next_block.number;

control Expand(inout headers_t hdr, inout ina_metadata_t meta) {
    action expand() {
        hdr.values.setValid();
        REPEAT_BUT_LAST(ZERO_STEP)
        LAST_VALUE(NEXT_STEP)
        hdr.next_block.setInvalid();
        hdr.ina.value_count = VALUES_PER_PACKET;
        hdr.udp.length_bytes = FULL_UDP_BYTES;
        hdr.ipv4.total_bytes = FULL_IP_BYTES;
    }

    apply {
        if (hdr.next_block.isValid()) {
            expand();
        }
    }
}

#endif // INA_EXPAND_P4
