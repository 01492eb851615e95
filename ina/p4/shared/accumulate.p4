// Accumulate: the values, one register each (on Tofino two to a register).
//
// The first packet of a round overwrites, the others add, a repeated one reads the sum. The packet
// carries away what the register then holds. Sums wrap modulo 2^32, as int32 does; for floats the
// hosts scale so that they cannot.
//
// A round that begins without values begins at 0: what an earlier round or another job has left in the
// registers must not come out, should a later packet of the round ask for values.
//
// In rounds of another shape than SUM (HAS_SHAPES) some workers give no values. Their packets touch none,
// unless they leave: then with what the registers hold, as any other of the round would. For this they
// give zeros.

#ifndef INA_ACCUMULATE_P4
#define INA_ACCUMULATE_P4

// The bodies: `operand` is the packet's value, `value` the register, `rv` what goes out.
#define TAKE_VALUE(value, rv, operand) value = operand; rv = value;
#define JOIN_VALUE(value, rv, operand) value = value + operand; rv = value;
#define READ_VALUE(value, rv, operand) rv = value;
#define SWAP_VALUE(value, rv, operand) rv = value; value = operand;

control Accumulate(inout headers_t hdr, inout ina_metadata_t meta) {
    VALUES_STATE(SLOTS_TOTAL)

    VALUES_ACTION(take_values, TAKE_VALUE)
    VALUES_ACTION(join_values, JOIN_VALUE)
    VALUES_ACTION(read_values, READ_VALUE)
    CLEAR_VALUES_ACTION(clear_values)
#ifdef HAS_SHAPES
    action make_room() {
        hdr.values.setValid();
        hdr.ina.value_count = VALUES_PER_PACKET;
        hdr.udp.length_bytes = FULL_UDP_BYTES;
        hdr.ipv4.total_bytes = FULL_IP_BYTES;
    }
    ZERO_VALUES_ACTION(give_zeros)
#endif
#ifdef MODE_EVICTS
    VALUES_ACTION(touch_values_swap, SWAP_VALUE)
#endif

    BY_ACCESS_VALUES(touch_values, take_values, join_values, read_values)

    apply {
        RUN_BY_ACCESS_VALUES(touch_values, take_values, join_values, read_values, clear_values)
    }
}

#endif // INA_ACCUMULATE_P4
