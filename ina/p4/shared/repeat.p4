// Repetition for the preprocessor: REPEAT(M, ...) is M(0, ...) M(1, ...) ... M(VALUES_PER_PACKET-1, ...).
// P4 has no loops; a packet's values are spelled one by one, and this file is the only one that
// knows how. Numbers are put together from their decimal digits: TEN(1, M) is M(10) ... M(19).
//
// REPEAT_PAIRS(M, ...) is M(0, 1, ...) M(2, 3, ...) ...: neighbours, for registers of two words.
// REPEAT_WORKERS(M, ...) is M(0, ...) ... M(31, ...).

#ifndef INA_REPEAT_P4
#define INA_REPEAT_P4

// N: the digits before the last, or nothing.
#define REPEAT_FOUR(N, M, ...) \
    M(N##0, __VA_ARGS__) M(N##1, __VA_ARGS__) M(N##2, __VA_ARGS__) M(N##3, __VA_ARGS__)
#define REPEAT_TEN(N, M, ...) \
    REPEAT_FOUR(N, M, __VA_ARGS__) \
    M(N##4, __VA_ARGS__) M(N##5, __VA_ARGS__) M(N##6, __VA_ARGS__) M(N##7, __VA_ARGS__) \
    M(N##8, __VA_ARGS__) M(N##9, __VA_ARGS__)
#define REPEAT_SIXTY(N, M, ...) \
    REPEAT_TEN(N##0, M, __VA_ARGS__) REPEAT_TEN(N##1, M, __VA_ARGS__) \
    REPEAT_TEN(N##2, M, __VA_ARGS__) REPEAT_TEN(N##3, M, __VA_ARGS__) \
    REPEAT_TEN(N##4, M, __VA_ARGS__) REPEAT_TEN(N##5, M, __VA_ARGS__)
#define REPEAT_HUNDRED(N, M, ...) \
    REPEAT_SIXTY(N, M, __VA_ARGS__) \
    REPEAT_TEN(N##6, M, __VA_ARGS__) REPEAT_TEN(N##7, M, __VA_ARGS__) \
    REPEAT_TEN(N##8, M, __VA_ARGS__) REPEAT_TEN(N##9, M, __VA_ARGS__)

// From 0 on: a number has no leading zeros.
#define REPEAT_FIRST_TEN(M, ...) REPEAT_TEN(, M, __VA_ARGS__)
#define REPEAT_FIRST_SIXTY(M, ...) \
    REPEAT_FIRST_TEN(M, __VA_ARGS__) REPEAT_TEN(1, M, __VA_ARGS__) \
    REPEAT_TEN(2, M, __VA_ARGS__) REPEAT_TEN(3, M, __VA_ARGS__) \
    REPEAT_TEN(4, M, __VA_ARGS__) REPEAT_TEN(5, M, __VA_ARGS__)
#define REPEAT_FIRST_HUNDRED(M, ...) \
    REPEAT_FIRST_SIXTY(M, __VA_ARGS__) \
    REPEAT_TEN(6, M, __VA_ARGS__) REPEAT_TEN(7, M, __VA_ARGS__) \
    REPEAT_TEN(8, M, __VA_ARGS__) REPEAT_TEN(9, M, __VA_ARGS__)

#define REPEAT_64(M, ...) \
    REPEAT_FIRST_SIXTY(M, __VA_ARGS__) REPEAT_FOUR(6, M, __VA_ARGS__)
#define REPEAT_128(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_TEN(10, M, __VA_ARGS__) \
    REPEAT_TEN(11, M, __VA_ARGS__) REPEAT_FOUR(12, M, __VA_ARGS__) M(124, __VA_ARGS__) \
    M(125, __VA_ARGS__) M(126, __VA_ARGS__) M(127, __VA_ARGS__)
#define REPEAT_256(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_HUNDRED(1, M, __VA_ARGS__) \
    REPEAT_TEN(20, M, __VA_ARGS__) REPEAT_TEN(21, M, __VA_ARGS__) REPEAT_TEN(22, M, __VA_ARGS__) \
    REPEAT_TEN(23, M, __VA_ARGS__) REPEAT_TEN(24, M, __VA_ARGS__) REPEAT_FOUR(25, M, __VA_ARGS__) \
    M(254, __VA_ARGS__) M(255, __VA_ARGS__)
#define REPEAT_360(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_HUNDRED(1, M, __VA_ARGS__) \
    REPEAT_HUNDRED(2, M, __VA_ARGS__) REPEAT_SIXTY(3, M, __VA_ARGS__)
#define REPEAT_1024(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_HUNDRED(1, M, __VA_ARGS__) \
    REPEAT_HUNDRED(2, M, __VA_ARGS__) REPEAT_HUNDRED(3, M, __VA_ARGS__) \
    REPEAT_HUNDRED(4, M, __VA_ARGS__) REPEAT_HUNDRED(5, M, __VA_ARGS__) \
    REPEAT_HUNDRED(6, M, __VA_ARGS__) REPEAT_HUNDRED(7, M, __VA_ARGS__) \
    REPEAT_HUNDRED(8, M, __VA_ARGS__) REPEAT_HUNDRED(9, M, __VA_ARGS__) \
    REPEAT_TEN(100, M, __VA_ARGS__) REPEAT_TEN(101, M, __VA_ARGS__) REPEAT_FOUR(102, M, __VA_ARGS__)

#define REPEAT_WORKERS(M, ...) \
    REPEAT_FIRST_TEN(M, __VA_ARGS__) REPEAT_TEN(1, M, __VA_ARGS__) \
    REPEAT_TEN(2, M, __VA_ARGS__) M(30, __VA_ARGS__) M(31, __VA_ARGS__)

#define REPEAT_TWO_PAIRS(N, M, ...) M(N##0, N##1, __VA_ARGS__) M(N##2, N##3, __VA_ARGS__)
#define REPEAT_FIVE_PAIRS(N, M, ...) \
    REPEAT_TWO_PAIRS(N, M, __VA_ARGS__) M(N##4, N##5, __VA_ARGS__) \
    M(N##6, N##7, __VA_ARGS__) M(N##8, N##9, __VA_ARGS__)
#define REPEAT_FIRST_THIRTY_PAIRS(M, ...) \
    REPEAT_FIVE_PAIRS(, M, __VA_ARGS__) REPEAT_FIVE_PAIRS(1, M, __VA_ARGS__) \
    REPEAT_FIVE_PAIRS(2, M, __VA_ARGS__) REPEAT_FIVE_PAIRS(3, M, __VA_ARGS__) \
    REPEAT_FIVE_PAIRS(4, M, __VA_ARGS__) REPEAT_FIVE_PAIRS(5, M, __VA_ARGS__)

#if VALUES_PER_PACKET == 64
#define REPEAT(M, ...) REPEAT_64(M, __VA_ARGS__)
#define REPEAT_PAIRS(M, ...) \
    REPEAT_FIRST_THIRTY_PAIRS(M, __VA_ARGS__) REPEAT_TWO_PAIRS(6, M, __VA_ARGS__)
#elif VALUES_PER_PACKET == 128
#define REPEAT(M, ...) REPEAT_128(M, __VA_ARGS__)
#define REPEAT_PAIRS(M, ...) \
    REPEAT_FIRST_THIRTY_PAIRS(M, __VA_ARGS__) REPEAT_FIVE_PAIRS(6, M, __VA_ARGS__) \
    REPEAT_FIVE_PAIRS(7, M, __VA_ARGS__) REPEAT_FIVE_PAIRS(8, M, __VA_ARGS__) \
    REPEAT_FIVE_PAIRS(9, M, __VA_ARGS__) REPEAT_FIVE_PAIRS(10, M, __VA_ARGS__) \
    REPEAT_FIVE_PAIRS(11, M, __VA_ARGS__) REPEAT_TWO_PAIRS(12, M, __VA_ARGS__) \
    M(124, 125, __VA_ARGS__) M(126, 127, __VA_ARGS__)
#elif VALUES_PER_PACKET == 256
#define REPEAT(M, ...) REPEAT_256(M, __VA_ARGS__)
#elif VALUES_PER_PACKET == 360
#define REPEAT(M, ...) REPEAT_360(M, __VA_ARGS__)
#elif VALUES_PER_PACKET == 1024
#define REPEAT(M, ...) REPEAT_1024(M, __VA_ARGS__)
#else
#error "VALUES_PER_PACKET must be 64, 128, 256, 360 or 1024"
#endif

#endif // INA_REPEAT_P4
