// In place of tofino/state.p4: the same macros over v1model's registers. A register of two words is two
// registers here; one that stands twice on the chip stands twice here.

#ifndef EMULATED_STATE_P4
#define EMULATED_STATE_P4

#define NOT_OLDER(a, b) ((a) - (b) < 0x80000000)

#define STATE(T, name, size) register<T, bit<16>>(size) name;

#define STATE_ACTION(T, state, name, out_field, ...)                          \
    action name() {                                                           \
        T value;                                                              \
        T rv;                                                                 \
        state.read(value, meta.slot_index);                                   \
        __VA_ARGS__                                                           \
        state.write(meta.slot_index, value);                                  \
        out_field = rv;                                                       \
    }

#define STATE_MARK(T, state, name, ...)                                       \
    action name() {                                                           \
        T value;                                                              \
        state.read(value, meta.slot_index);                                   \
        __VA_ARGS__                                                           \
        state.write(meta.slot_index, value);                                  \
    }

#define STATE_PAIR(T, name, lo, hi, size)                                     \
    STATE(bit<32>, name##_1_##lo, size) STATE(bit<32>, name##_1_##hi, size)   \
    STATE(bit<32>, name##_2_##lo, size) STATE(bit<32>, name##_2_##hi, size)

// One copy gives out one of the two results.
#define ONE_COPY_ACTION(T, state, lo, hi, name, out_field, rv, ...)           \
    action name() {                                                           \
        T value;                                                              \
        bit<32> rv_1;                                                         \
        bit<32> rv_2;                                                         \
        state##_##lo.read(value.lo, meta.slot_index);                         \
        state##_##hi.read(value.hi, meta.slot_index);                         \
        __VA_ARGS__                                                           \
        state##_##lo.write(meta.slot_index, value.lo);                        \
        state##_##hi.write(meta.slot_index, value.hi);                        \
        out_field = rv;                                                       \
    }
#define STATE_PAIR_ACTION(T, state, lo, hi, name, out_1, out_2, ...)          \
    ONE_COPY_ACTION(T, state##_1, lo, hi, name##_1, out_1, rv_1, __VA_ARGS__) \
    ONE_COPY_ACTION(T, state##_2, lo, hi, name##_2, out_2, rv_2, __VA_ARGS__)

// Two conditions, one output. Times are v1model's, in microseconds (US_TO_CLOCK_BITS is 0): a Tofino
// compares what claims.p4 makes of its clock.
#define STATE_OWNER(name, size)                                               \
    STATE(bit<32>, name##_epoch, size) STATE(bit<32>, name##_stamp, size)

#define STATE_OWNER_ACTION(state, name, first, second, ...)                   \
    action name() {                                                           \
        owner_t value;                                                        \
        bit<8> held = 1;                                                      \
        state##_epoch.read(value.epoch, meta.slot_index);                     \
        state##_stamp.read(value.stamp, meta.slot_index);                     \
        if (first) { held = held << 1; }                                      \
        if (second) { held = held << 2; }                                     \
        __VA_ARGS__                                                           \
        state##_epoch.write(meta.slot_index, value.epoch);                    \
        state##_stamp.write(meta.slot_index, value.stamp);                    \
        meta.standing = held;                                                 \
    }

#define IS_OLD(stamp) (meta.now - (stamp) >= meta.age_limit)
#define USED_STAMP meta.now
#define FREE_STAMP (meta.now + 0x80000000)

#define JOIN_SET(bitmap, before, set, full) bitmap = bitmap | (set);

#define VALUE_PAIR_STATE(i, j, size)                                          \
    STATE(bit<32>, value_##i, size) STATE(bit<32>, value_##j, size)

#define VALUE_PAIR_BODY(i, j, BODY)                                           \
        bit<32> lo;                                                           \
        bit<32> hi;                                                           \
        bit<32> rv_lo;                                                        \
        bit<32> rv_hi;                                                        \
        value_##i.read(lo, meta.slot_index);                                  \
        value_##j.read(hi, meta.slot_index);                                  \
        BODY(lo, rv_lo, hdr.values.v##i)                                      \
        BODY(hi, rv_hi, hdr.values.v##j)                                      \
        value_##i.write(meta.slot_index, lo);                                 \
        value_##j.write(meta.slot_index, hi);                                 \
        hdr.values.v##i = rv_lo;

#if __TARGET_TOFINO__ == 1

// The second word is not given out.
#define VALUE_PAIR_ACTION(i, j, name, BODY)                                   \
    action name##_##i() { VALUE_PAIR_BODY(i, j, BODY) }

#define HARVEST_PAIR_ACTION(i, j, ...)                                        \
    action harvest_values_##i() { value_##j.read(hdr.values.v##j, meta.slot_index); }

#else

#define VALUE_PAIR_ACTION(i, j, name, BODY)                                   \
    action name##_##i() {                                                     \
        VALUE_PAIR_BODY(i, j, BODY)                                           \
        hdr.values.v##j = rv_hi;                                              \
    }

#endif

#define COUNTER(index_t, name, size) counter<index_t>(size, CounterType.packets_and_bytes) name;
#define DIRECT_COUNTER(name) direct_counter(CounterType.packets_and_bytes) name;

#endif // EMULATED_STATE_P4
