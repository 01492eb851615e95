// How v1model (BMv2, the soft switch) spells the stateful parts of the shared controls. The Tofino
// twin has a shim with the same macros: a RegisterAction for STATE_ACTION, a table with constant entries
// for BY_AGE and BY_ACCESS.
//
// STATE(T, name, size)                    a register
// STATE_ACTION(T, state, name, out, body) action `name`: one access to `state` at meta.slot_index. `body`
//                                         reads and writes `value` and sets `rv`, which goes to `out`.
//                                         At most two conditions and two updates, as a Tofino stateful
//                                         ALU has. The body may hold commas.
// NOT_OLDER(a, b)                         serial-number arithmetic (RFC 1982) on 32 bits: `a` is `b` or newer.
//                                         Numbers exactly 2^31 apart count as older, so that what cannot
//                                         be told is never summed.
// BY_AGE, BY_ACCESS, ..._VALUES           declare which of a register's actions runs when (nothing to
//                                         declare here), and RUN_BY_... runs it.
// VALUES_ACTION(name, BODY)               the same action on every value of the packet, in index order
// CLEAR_VALUES_ACTION(name)               0 into every value register of the slot

#ifndef INA_SHIM_P4
#define INA_SHIM_P4

#define STATE(T, name, size) register<T>(size) name;

#define NOT_OLDER(a, b) ((a) - (b) < 0x80000000)

#define STATE_ACTION(T, state, name, out_field, ...) \
    action name() {                                  \
        T value;                                     \
        T rv;                                        \
        state.read(value, meta.slot_index);          \
        __VA_ARGS__                                  \
        state.write(meta.slot_index, value);         \
        out_field = rv;                              \
    }

#define BY_AGE(choice, age, newer, same, older)
#define RUN_BY_AGE(choice, age, newer, same, older) \
    if ((age) == 0) {                               \
        same();                                     \
    } else if ((age) < 0x80000000) {                \
        newer();                                    \
    } else {                                        \
        older();                                    \
    }

#define BY_ACCESS(choice, access, take, join, read)
#define RUN_BY_ACCESS(choice, access, take, join, read) \
    if ((access) == ACCESS_JOIN) {                      \
        join();                                         \
    } else if ((access) == ACCESS_TAKE) {               \
        take();                                         \
    } else if ((access) == ACCESS_READ) {               \
        read();                                         \
    }

#define BY_ACCESS_2(choice, access, take, join)
#define RUN_BY_ACCESS_2(choice, access, take, join) \
    if ((access) == ACCESS_JOIN) {                  \
        join();                                     \
    } else if ((access) == ACCESS_TAKE) {           \
        take();                                     \
    }

#define BY_ACCESS_VALUES(choice, access, take, join, read)
#define RUN_BY_ACCESS_VALUES(choice, access, take, join, read) \
    RUN_BY_ACCESS(choice, access, take, join, read)

// One action for all values: cheap on BMv2, and the soft switch rolls the equal steps up into a loop.
#define VALUE_STEP(i, BODY)                    \
    value_##i.read(value, meta.slot_index);    \
    BODY(hdr.values.v##i)                      \
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

#endif // INA_SHIM_P4
