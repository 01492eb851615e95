// How TNA (Tofino 1) and T2NA (Tofino 2) spell registers, what a stateful ALU does to them, and counters:
// the macros of ../ina/p4/v1model/shim.p4, with the same bodies in RegisterActions. What is chosen by
// tables is in shim.p4.
//
// A stateful ALU gives out one word of a register on Tofino 1. Where a body has two outputs, the register
// stands twice: both copies run the same body on the same packets, so that they always hold the same,
// and each gives out one of the two. (Tofino 2 has two outputs, but p4c 1.2.5.16 finds those of
// Slots' body incompatible; so it stands twice there, too.)

#ifndef INA_TOFINO_STATE_P4
#define INA_TOFINO_STATE_P4

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

#define STATE_MARK(T, state, name, ...)                                       \
    RegisterAction<T, slot_index_t, T>(state) name##_alu = {                  \
        void apply(inout T value) { __VA_ARGS__ }                             \
    };                                                                        \
    action name() { name##_alu.execute(meta.slot_index); }

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

// Two conditions, one output: one of four bits says which of them held.
#define STATE_OWNER(name, size) Register<owner_t, slot_index_t>(size, {0, 0}) name;

#define STATE_OWNER_ACTION(state, name, first, second, ...)                   \
    RegisterAction<owner_t, slot_index_t, bit<8>>(state) name##_alu = {       \
        void apply(inout owner_t value, out bit<8> rv) {                      \
            rv = this.predicate(first, second);                               \
            __VA_ARGS__                                                       \
        }                                                                     \
    };                                                                        \
    action name() { meta.standing = name##_alu.execute(meta.slot_index); }

// In units of the clock; see claims.p4.
#if __TARGET_TOFINO__ == 1
#define IS_OLD(stamp) (ig_intr_md.ingress_mac_tstamp[OF_CLOCK] >= (stamp))
#define USED_STAMP (ig_intr_md.ingress_mac_tstamp[OF_CLOCK] + PATIENCE)
#else
#define IS_OLD(stamp) (meta.heard_before >= (stamp))
#define USED_STAMP (meta.heard_before + PATIENCE)
#endif
#define FREE_STAMP 0

// One worker at a time: sets come to aggregators alone.
#define JOIN_SET(bitmap, before, set, full) bitmap = bitmap | (set);

// Values: two to a register. BODY runs once for each; what it gives out of the second is lost on
// Tofino 1, where the harvesting pass reads it (docs/p4_guide.md).
#define VALUE_PAIR_STATE(i, j, size) Register<pair_t, slot_index_t>(size, {0, 0}) value_##i##_##j;

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

#endif

// By job, or by INA_DROP_*; and one beside each entry of a table.
#define COUNTER(index_t, name, size) Counter<bit<64>, index_t>(size, CounterType_t.PACKETS_AND_BYTES) name;
#define DIRECT_COUNTER(name) DirectCounter<bit<64>>(CounterType_t.PACKETS_AND_BYTES) name;

#endif // INA_TOFINO_STATE_P4
