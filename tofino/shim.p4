// How TNA (Tofino 1) and T2NA (Tofino 2) spell the stateful parts of the shared controls: the macros of
// ../ina/p4/v1model/shim.p4, with the same bodies in RegisterActions.
//
// A stateful ALU gives out one word of a register on Tofino 1. Where a body has two outputs, the register
// stands twice: both copies run the same body on the same packets, so that they always hold the same,
// and each gives out one of the two. (Tofino 2 has two outputs, but p4c 1.2.5.16 finds those of
// Slots' body incompatible; so it stands twice there, too.)

#ifndef INA_TOFINO_SHIM_P4
#define INA_TOFINO_SHIM_P4

typedef bit<SLOT_INDEX_BITS> slot_index_t;

struct pair_t {
    bit<32> lo;
    bit<32> hi;
}

// The difference of two words as they are, seen as a signed number: one comparison of a stateful ALU.
#define NOT_OLDER(a, b) ((int<32>)(a) - (int<32>)(b) >= 0)

#define STATE(T, name, size) Register<T, slot_index_t>(size, 0) name;

#define STATE_ACTION(T, state, name, out_field, ...)                          \
    RegisterAction<T, slot_index_t, T>(state) name##_alu = {                  \
        void apply(inout T value, out T rv) { __VA_ARGS__ }                   \
    };                                                                        \
    action name() { out_field = name##_alu.execute(meta.slot_index); }

#define RUN(action) action();

#define STATE_PAIR(T, name, lo, hi, size)                                     \
    Register<T, slot_index_t>(size, {0, 0}) name##_1;                         \
    Register<T, slot_index_t>(size, {0, 0}) name##_2;

#define STATE_PAIR_ACTION(T, state, lo, hi, name, out_1, out_2, ...)          \
    RegisterAction<T, slot_index_t, bit<32>>(state##_1) name##_alu_1 = {      \
        void apply(inout T value, out bit<32> rv_1) {                         \
            bit<32> rv_2;                                                     \
            __VA_ARGS__                                                       \
        }                                                                     \
    };                                                                        \
    RegisterAction<T, slot_index_t, bit<32>>(state##_2) name##_alu_2 = {      \
        void apply(inout T value, out bit<32> rv_2) {                         \
            bit<32> rv_1;                                                     \
            __VA_ARGS__                                                       \
        }                                                                     \
    };                                                                        \
    action name##_1() { out_1 = name##_alu_1.execute(meta.slot_index); }      \
    action name##_2() { out_2 = name##_alu_2.execute(meta.slot_index); }

// The parser has cleared what `older` clears: its action need not run.
#define BY_AGE(choice, age, newer, same, older)                               \
    BY_AGE_TABLE(choice##_1, age, newer##_1, same##_1)                        \
    BY_AGE_TABLE(choice##_2, age, newer##_2, same##_2)
#define RUN_BY_AGE(choice, age, newer, same, older)                           \
    choice##_1.apply();                                                       \
    choice##_2.apply();

#define BY_AGE_TABLE(choice, age, newer, same)                                \
    table choice {                                                            \
        key = { age: ternary @name("age"); }                                  \
        actions = { newer; same; @defaultonly NoAction; }                     \
        const entries = {                                                     \
            32w0: same();                                                     \
            32w0 &&& 32w0x80000000: newer();                                  \
        }                                                                     \
        size = 2;                                                             \
        const default_action = NoAction();                                    \
    }

// Whether the sender is in meta.before is a ternary match: one entry a worker.
#define REPEATED_BY(i, read) (32w1 << i &&& 32w1 << i, 8w##i): read();
#define BY_ROUND(choice, take, join, read)                                    \
    table choice {                                                            \
        key = {                                                               \
            meta.before: ternary @name("before");                             \
            hdr.ina.worker: ternary @name("worker");                          \
        }                                                                     \
        actions = { take; join; read; @defaultonly NoAction; }                \
        const entries = {                                                     \
            (32w0, _): take();                                                \
            REPEAT_WORKERS(REPEATED_BY, read)                                 \
            (_, _): join();                                                   \
        }                                                                     \
        size = 34;                                                            \
        const default_action = NoAction(); /* an action with state cannot be it */\
    }
#define RUN_BY_ROUND(choice, take, join, read) choice.apply();

// Values: two to a register. BODY runs once for each; what it gives out of the second is lost on
// Tofino 1, where the harvesting pass reads it (docs/p4_guide.md).
#define VALUE_PAIR_STATE(i, j, size) Register<pair_t, slot_index_t>(size, {0, 0}) value_##i##_##j;
#define VALUES_STATE(size) REPEAT_PAIRS(VALUE_PAIR_STATE, size)

#if __TARGET_TOFINO__ == 1

#define VALUE_PAIR_ACTION(i, j, name, BODY)                                   \
    RegisterAction<pair_t, slot_index_t, bit<32>>(value_##i##_##j) name##_alu_##i = { \
        void apply(inout pair_t value, out bit<32> rv) {                      \
            bit<32> lost;                                                     \
            BODY(value.lo, rv, hdr.values.v##i)                               \
            BODY(value.hi, lost, hdr.values.v##j)                             \
        }                                                                     \
    };                                                                        \
    action name##_##i() { hdr.values.v##i = name##_alu_##i.execute(meta.slot_index); }

#define HARVEST_PAIR_ACTION(i, j, ...)                                        \
    RegisterAction<pair_t, slot_index_t, bit<32>>(value_##i##_##j) harvest_alu_##i = { \
        void apply(inout pair_t value, out bit<32> rv) { rv = value.hi; }     \
    };                                                                        \
    action harvest_values_##i() { hdr.values.v##j = harvest_alu_##i.execute(meta.slot_index); }

#define VALUE_PAIR_TABLE(i, j, choice, take, join, read)                      \
    table choice##_##i {                                                      \
        key = {                                                               \
            meta.access: exact @name("access");                               \
            meta.harvest: exact @name("harvest");                             \
        }                                                                     \
        actions = {                                                           \
            take##_##i; join##_##i; read##_##i; harvest_values_##i;           \
            @defaultonly NoAction;                                            \
        }                                                                     \
        const entries = {                                                     \
            (ACCESS_TAKE, 0): take##_##i();                                   \
            (ACCESS_JOIN, 0): join##_##i();                                   \
            (ACCESS_READ, 0): read##_##i();                                   \
            (ACCESS_READ, 1): harvest_values_##i();                           \
        }                                                                     \
        size = 4;                                                             \
        const default_action = NoAction();                                    \
    }

#define BY_ACCESS_VALUES(choice, take, join, read)                            \
    REPEAT_PAIRS(HARVEST_PAIR_ACTION)                                         \
    REPEAT_PAIRS(VALUE_PAIR_TABLE, choice, take, join, read)

#else

#define VALUE_PAIR_ACTION(i, j, name, BODY)                                   \
    RegisterAction2<pair_t, slot_index_t, bit<32>, bit<32>>(value_##i##_##j) name##_alu_##i = { \
        void apply(inout pair_t value, out bit<32> rv_1, out bit<32> rv_2) {  \
            BODY(value.lo, rv_1, hdr.values.v##i)                             \
            BODY(value.hi, rv_2, hdr.values.v##j)                             \
        }                                                                     \
    };                                                                        \
    action name##_##i() {                                                     \
        hdr.values.v##i = name##_alu_##i.execute(meta.slot_index, hdr.values.v##j); \
    }

#define VALUE_PAIR_TABLE(i, j, choice, take, join, read)                      \
    table choice##_##i {                                                      \
        key = { meta.access: exact @name("access"); }                         \
        actions = { take##_##i; join##_##i; read##_##i; @defaultonly NoAction; } \
        const entries = {                                                     \
            ACCESS_TAKE: take##_##i();                                        \
            ACCESS_JOIN: join##_##i();                                        \
            ACCESS_READ: read##_##i();                                        \
        }                                                                     \
        size = 3;                                                             \
        const default_action = NoAction();                                    \
    }

#define BY_ACCESS_VALUES(choice, take, join, read)                            \
    REPEAT_PAIRS(VALUE_PAIR_TABLE, choice, take, join, read)

#endif

#define VALUES_ACTION(name, BODY) REPEAT_PAIRS(VALUE_PAIR_ACTION, name, BODY)

// A packet without values takes, joins and reads as if it held zeros, and leaves without them.
#define CLEAR_STEP(i, ...) hdr.values.v##i = 0;
#define CLEAR_VALUES_ACTION(name)                                             \
    action name() {                                                           \
        hdr.values.setValid();                                                \
        meta.blank = 1;                                                       \
        REPEAT(CLEAR_STEP)                                                    \
    }

#define RUN_VALUE_PAIR(i, j, choice) choice##_##i.apply();
#define RUN_BY_ACCESS_VALUES(choice, take, join, read, clear)                 \
    if (!hdr.values.isValid()) {                                              \
        clear();                                                              \
    }                                                                         \
    REPEAT_PAIRS(RUN_VALUE_PAIR, choice)                                      \
    if (meta.blank == 1) {                                                    \
        hdr.values.setInvalid();                                              \
    }

#endif // INA_TOFINO_SHIM_P4
