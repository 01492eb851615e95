// How both Tofinos choose what a packet does to a register: the macros of ../ina/p4/v1model/shim.p4, with a
// table with constant entries for each choice. The registers themselves are in state.p4.

#ifndef INA_TOFINO_SHIM_P4
#define INA_TOFINO_SHIM_P4

#include "state.p4"

#define RUN(action) action();

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
// Of mode `shared` it has the same bit on all switches of a job, whatever its number on this one is.
#ifdef MODE_SHARED
#define SENDER_KEY meta.worker_bit: ternary @name("worker_bit");
#define REPEATED_BY(i, read) (32w1 << i &&& 32w1 << i, 32w1 << i &&& 32w1 << i): read();
#else
#define SENDER_KEY hdr.ina.worker: ternary @name("worker");
#define REPEATED_BY(i, read) (32w1 << i &&& 32w1 << i, 8w##i): read();
#endif
#define BY_ROUND(choice, take, join, read)                                    \
    table choice {                                                            \
        key = {                                                               \
            meta.before: ternary @name("before");                             \
            SENDER_KEY                                                        \
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

// Values: two to a register, and a table for each register.
#define VALUES_STATE(size) REPEAT_PAIRS(VALUE_PAIR_STATE, size)
#define VALUES_ACTION(name, BODY) REPEAT_PAIRS(VALUE_PAIR_ACTION, name, BODY)

#if __TARGET_TOFINO__ == 1

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

// A packet without values takes, joins and reads as if it held zeros. It leaves without them, but for one that
// takes the sum of a round along in which not all have values to give: with what it has read.
#define CLEAR_STEP(i, ...) hdr.values.v##i = 0;
#ifdef MODE_SHARED
// A resend takes along what is there. Where slots are the job's own nothing leaves then.
#define RESEND_ASKED meta.is_resend: ternary @name("is_resend");
#define AND_ANY , _
#define FLUSH_ENTRIES                                                         \
            (_, ACCESS_JOIN, _, 1): make_room();                              \
            (_, ACCESS_READ, _, 1): make_room();
#define FLUSH_SIZE 2
#else
#define RESEND_ASKED
#define AND_ANY
#define FLUSH_ENTRIES
#define FLUSH_SIZE 0
#endif
#define CLEAR_VALUES_ACTION(name)                                             \
    action name() {                                                           \
        hdr.values.setValid();                                                \
        meta.blank = 1;                                                       \
        REPEAT(CLEAR_STEP)                                                    \
    }                                                                         \
    action make_room() {                                                      \
        hdr.ina.value_count = VALUES_PER_PACKET;                              \
        hdr.udp.length_bytes = FULL_UDP_BYTES;                                \
        hdr.ipv4.total_bytes = FULL_IP_BYTES;                                 \
    }                                                                         \
    action stay_bare() { hdr.values.setInvalid(); }                           \
    table room {                                                              \
        key = {                                                               \
            hdr.ina.shape: ternary @name("shape");                            \
            meta.access: ternary @name("access");                             \
            meta.missing: ternary @name("missing");                           \
            RESEND_ASKED                                                      \
        }                                                                     \
        actions = { make_room; stay_bare; }                                   \
        const entries = {                                                     \
            (INA_SHAPE_SUM, _, _ AND_ANY): stay_bare();                       \
            (_, ACCESS_TAKE, 0 AND_ANY): make_room();                         \
            (_, ACCESS_JOIN, 0 AND_ANY): make_room();                         \
            (_, ACCESS_READ, 0 AND_ANY): make_room();                         \
            FLUSH_ENTRIES                                                     \
        }                                                                     \
        size = 4 + FLUSH_SIZE;                                                \
        const default_action = stay_bare();                                   \
    }

#define RUN_VALUE_PAIR(i, j, choice) choice##_##i.apply();
#define RUN_BY_ACCESS_VALUES(choice, take, join, read, clear)                 \
    if (!hdr.values.isValid()) {                                              \
        clear();                                                              \
    }                                                                         \
    REPEAT_PAIRS(RUN_VALUE_PAIR, choice)                                      \
    if (meta.blank == 1) {                                                    \
        room.apply();                                                         \
    }

#endif // INA_TOFINO_SHIM_P4
