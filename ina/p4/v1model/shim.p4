// How v1model (BMv2, the soft switch) spells the stateful parts of the shared controls. The Tofino
// twin has a shim with the same macros: a RegisterAction for STATE_ACTION, a table with constant entries
// for BY_AGE, BY_ROUND and BY_ACCESS_VALUES.
//
// STATE(T, name, size)                    a register
// STATE_ACTION(T, state, name, out, body) action `name`: one access to `state` at meta.slot_index. `body`
//                                         reads and writes `value` and sets `rv`, which goes to `out`.
//                                         At most two conditions and two updates of a word, as a Tofino
//                                         stateful ALU has. The body may hold commas.
// STATE_MARK(T, state, name, body)        the same, and nothing goes out: the packet stays as it is
// STATE_PAIR(T, name, lo, hi, size)       a register of two words, the members `lo` and `hi` of struct T
// STATE_PAIR_ACTION(T, state, lo, hi, name, out_1, out_2, body)
//                                         the same, with `value.lo`, `value.hi` and two outputs `rv_1`,
//                                         `rv_2`
// NOT_OLDER(a, b)                         serial-number arithmetic (RFC 1982) on 32 bits: `a` is `b` or newer.
//                                         Numbers exactly 2^31 apart count as older, so that what cannot
//                                         be told is never summed.
// STATE_OWNER(name, size)                 the owners of shared slots (owner_t)
// STATE_OWNER_ACTION(state, name, first, second, body)
//                                         as STATE_PAIR_ACTION. What it gives out says which of two
//                                         conditions held before `body`: here meta.age, and meta.owner
//                                         after it
// IS_OLD(stamp)                           whether nothing was heard for so long that this packet may have
//                                         the slot
// USED_STAMP, FREE_STAMP                  what is left in a slot that is claimed, or released
// JOIN_SET(bitmap, before, set, full)     enters workers, or one, into a round's bitmap: all of them if none
//                                         is there. If all who are there are among them, and others, they
//                                         take the round over (before = 0). Else nobody enters.
// BY_AGE(choice, age, newer, same, older) declares which of a register's actions runs when (nothing to
// BY_ROUND(choice, take, join, read)      declare here), and RUN_BY_... runs it: by an epoch's age; by who
//                                         is in the round already; by meta.access.
// RUN(action)                             runs an action that is not a choice
// VALUES_STATE(size)                      the registers of the values
// VALUES_ACTION(name, BODY)               the same action on every value of the packet, in index order
// CLEAR_VALUES_ACTION(name)               0 into every value register of the slot
// ZERO_VALUES_ACTION(name)                0 into every value of the packet

#ifndef INA_SHIM_P4
#define INA_SHIM_P4

#define STATE(T, name, size) register<T>(size) name;

#define STATE_PAIR(T, name, lo, hi, size) \
    register<bit<32>>(size) name##_##lo;  \
    register<bit<32>>(size) name##_##hi;

#define NOT_OLDER(a, b) ((a) - (b) < 0x80000000)

// The clock wraps around: what was heard of half its way ago is as old as can be.
#define IS_OLD(stamp) (meta.now - (stamp) >= meta.age_limit)
#define USED_STAMP meta.stamp
#define FREE_STAMP meta.stamp

#define JOIN_SET(bitmap, before, set, full)                                     \
    if ((bitmap & (set)) == 0) {                                                \
        bitmap = bitmap | (set);                                                \
    } else if (bitmap != (full) && bitmap != (set) && (bitmap & ~(set)) == 0) { \
        bitmap = (set);                                                         \
        before = 0;                                                             \
    }

#define STATE_ACTION(T, state, name, out_field, ...) \
    action name() {                                  \
        T value;                                     \
        T rv;                                        \
        state.read(value, meta.slot_index);          \
        __VA_ARGS__                                  \
        state.write(meta.slot_index, value);         \
        out_field = rv;                              \
    }

#define STATE_MARK(T, state, name, ...)              \
    action name() {                                  \
        T value;                                     \
        state.read(value, meta.slot_index);          \
        __VA_ARGS__                                  \
        state.write(meta.slot_index, value);         \
    }

#define STATE_PAIR_ACTION(T, state, lo, hi, name, out_1, out_2, ...) \
    action name() {                                                  \
        T value;                                                     \
        bit<32> rv_1;                                                \
        bit<32> rv_2;                                                \
        state##_##lo.read(value.lo, meta.slot_index);                \
        state##_##hi.read(value.hi, meta.slot_index);                \
        __VA_ARGS__                                                  \
        state##_##lo.write(meta.slot_index, value.lo);               \
        state##_##hi.write(meta.slot_index, value.hi);               \
        out_1 = rv_1;                                                \
        out_2 = rv_2;                                                \
    }

#define STATE_OWNER(name, size) STATE_PAIR(owner_t, name, epoch, stamp, size)
#define STATE_OWNER_ACTION(state, name, first, second, ...)                        \
    STATE_PAIR_ACTION(owner_t, state, epoch, stamp, name, meta.age, meta.owner,    \
                      rv_1 = meta.epoch - value.epoch; __VA_ARGS__ rv_2 = value.epoch;)

#define RUN(action) action();

#define BY_AGE(choice, age, newer, same, older)
#define RUN_BY_AGE(choice, age, newer, same, older) \
    if ((age) == 0) {                               \
        same();                                     \
    } else if ((age) < 0x80000000) {                \
        newer();                                    \
    } else {                                        \
        older();                                    \
    }

// First of all, in programs that put sums out: with those, each choice has an action `choice`_swap.
#ifdef MODE_EVICTS
#define RUN_SWAP(choice) if (meta.evicts == 1) { choice##_swap(); } else
#else
#define RUN_SWAP(choice)
#endif

#define BY_ROUND(choice, take, join, read)
#define RUN_BY_ROUND(choice, take, join, read)             \
    RUN_SWAP(choice)                                       \
    if (meta.before == 0) {                                \
        take();                                            \
    } else if ((meta.before & meta.worker_bit) == 0) {     \
        join();                                            \
    } else {                                               \
        read();                                            \
    }

// One action for all values: cheap on BMv2, and the soft switch rolls the equal steps up into a loop.
#define VALUE_STATE(i, size) STATE(bit<32>, value_##i, size)
#define VALUES_STATE(size) REPEAT(VALUE_STATE, size)

#define VALUE_STEP(i, BODY)                    \
    value_##i.read(value, meta.slot_index);    \
    BODY(value, rv, hdr.values.v##i)           \
    value_##i.write(meta.slot_index, value);   \
    hdr.values.v##i = rv;
#define VALUES_ACTION(name, BODY)  \
    action name() {                \
        bit<32> value;             \
        bit<32> rv;                \
        REPEAT(VALUE_STEP, BODY)   \
    }

#define CLEAR_STEP(i, ...) value_##i.write(meta.slot_index, 0);
#define CLEAR_VALUES_ACTION(name) \
    action name() {               \
        REPEAT(CLEAR_STEP)        \
    }

#define ZERO_VALUE_STEP(i, ...) hdr.values.v##i = 0;
#define ZERO_VALUES_ACTION(name) \
    action name() {              \
        REPEAT(ZERO_VALUE_STEP)  \
    }

// In jobs of mode `stream` the last value's register takes the lesser number, where others take the sum.
// It is brought about by what is added, so that all values are joined by equal steps, which the soft
// switch makes a loop of.
#ifdef MODE_STREAM
#define LEAST_STEP(i, ...)                             \
    value_##i.read(least, meta.slot_index);            \
    if (least < hdr.values.v##i) {                     \
        hdr.values.v##i = least;                       \
    }                                                  \
    hdr.values.v##i = hdr.values.v##i - least;
#define BY_ACCESS_VALUES(choice, take, join, read)     \
    action choice##_least() {                          \
        bit<32> least;                                 \
        LAST_VALUE(LEAST_STEP)                         \
    }
#define RUN_JOIN(choice, join) if (meta.is_stream == 1) { choice##_least(); } join();
#else
#define BY_ACCESS_VALUES(choice, take, join, read)
#define RUN_JOIN(choice, join) join();
#endif

// Whether a packet that came without values leaves with those of the slot: where it completes its round,
// repeats it or takes it along, if that is of another shape than SUM; and with an owner's sum that it puts out.
#if defined(MODE_EVICTS)
#define TAKES_SUM                                                                     \
    (meta.evicts == 1 || (hdr.ina.shape != INA_SHAPE_SUM                              \
                          && (meta.missing == 0 || meta.is_flush == 1)))
#elif defined(MODE_STREAM)
#define TAKES_SUM (hdr.ina.shape != INA_SHAPE_SUM && meta.missing == 0 && meta.is_stream == 0)
#else
#define TAKES_SUM (hdr.ina.shape != INA_SHAPE_SUM && meta.missing == 0)
#endif
// Such a packet gives zeros, then goes where those with values do.
#ifdef HAS_SHAPES
#define EXPAND_VALUES                          \
    if (!hdr.values.isValid() && TAKES_SUM) {  \
        make_room();                           \
        give_zeros();                          \
    }
#else
#define EXPAND_VALUES
#endif

#define RUN_BY_ACCESS_VALUES(choice, take, join, read, clear) \
    EXPAND_VALUES                                             \
    if (hdr.values.isValid()) {                               \
        RUN_SWAP(choice)                                      \
        if (meta.access == ACCESS_JOIN) {                     \
            RUN_JOIN(choice, join)                            \
        } else if (meta.access == ACCESS_TAKE) {              \
            take();                                           \
        } else {                                              \
            read();                                           \
        }                                                     \
    } else if (meta.access == ACCESS_TAKE) {                  \
        clear();                                              \
    }

#endif // INA_SHIM_P4
