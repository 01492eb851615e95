// The last value of a packet apart from the others, which shared/repeat.p4 spells with it:
// REPEAT_BUT_LAST(M, ...) is M(0, ...) ... M(VALUES_PER_PACKET-2, ...), LAST_VALUE(M, ...) the one that it leaves.

#ifndef INA_LAST_VALUE_P4
#define INA_LAST_VALUE_P4

#if VALUES_PER_PACKET == 64
#define LAST_VALUE(M, ...) M(63, __VA_ARGS__)
#define REPEAT_BUT_LAST(M, ...) \
    REPEAT_FIRST_SIXTY(M, __VA_ARGS__) M(60, __VA_ARGS__) M(61, __VA_ARGS__) M(62, __VA_ARGS__)
#elif VALUES_PER_PACKET == 256
#define LAST_VALUE(M, ...) M(255, __VA_ARGS__)
#define REPEAT_BUT_LAST(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_HUNDRED(1, M, __VA_ARGS__) \
    REPEAT_TEN(20, M, __VA_ARGS__) REPEAT_TEN(21, M, __VA_ARGS__) REPEAT_TEN(22, M, __VA_ARGS__) \
    REPEAT_TEN(23, M, __VA_ARGS__) REPEAT_TEN(24, M, __VA_ARGS__) REPEAT_FOUR(25, M, __VA_ARGS__) \
    M(254, __VA_ARGS__)
#elif VALUES_PER_PACKET == 360
#define LAST_VALUE(M, ...) M(359, __VA_ARGS__)
#define REPEAT_BUT_LAST(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_HUNDRED(1, M, __VA_ARGS__) \
    REPEAT_HUNDRED(2, M, __VA_ARGS__) REPEAT_TEN(30, M, __VA_ARGS__) REPEAT_TEN(31, M, __VA_ARGS__) \
    REPEAT_TEN(32, M, __VA_ARGS__) REPEAT_TEN(33, M, __VA_ARGS__) REPEAT_TEN(34, M, __VA_ARGS__) \
    REPEAT_FOUR(35, M, __VA_ARGS__) M(354, __VA_ARGS__) M(355, __VA_ARGS__) M(356, __VA_ARGS__) \
    M(357, __VA_ARGS__) M(358, __VA_ARGS__)
#elif VALUES_PER_PACKET == 1024
#define LAST_VALUE(M, ...) M(1023, __VA_ARGS__)
#define REPEAT_BUT_LAST(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_HUNDRED(1, M, __VA_ARGS__) \
    REPEAT_HUNDRED(2, M, __VA_ARGS__) REPEAT_HUNDRED(3, M, __VA_ARGS__) \
    REPEAT_HUNDRED(4, M, __VA_ARGS__) REPEAT_HUNDRED(5, M, __VA_ARGS__) \
    REPEAT_HUNDRED(6, M, __VA_ARGS__) REPEAT_HUNDRED(7, M, __VA_ARGS__) \
    REPEAT_HUNDRED(8, M, __VA_ARGS__) REPEAT_HUNDRED(9, M, __VA_ARGS__) \
    REPEAT_TEN(100, M, __VA_ARGS__) REPEAT_TEN(101, M, __VA_ARGS__) M(1020, __VA_ARGS__) \
    M(1021, __VA_ARGS__) M(1022, __VA_ARGS__)
#else
#error "VALUES_PER_PACKET must be 64, 256, 360 or 1024"
#endif

#endif // INA_LAST_VALUE_P4
