// REPEAT for the builds that speak RoCEv2: as shared/repeat.p4, whose parts it puts together, for what a path
// MTU of InfiniBand's (256, 1024 or 4096 bytes) has room for behind ina's header. Those parts come under a
// number of values that repeat.p4 has, which is set right again: what chips are made of stays as it was.

#ifndef INA_ROCE_REPEAT_P4
#define INA_ROCE_REPEAT_P4

#if VALUES_PER_PACKET == 56
#define ROCE_VALUES_56
#elif VALUES_PER_PACKET == 248
#define ROCE_VALUES_248
#elif VALUES_PER_PACKET == 1016
#define ROCE_VALUES_1016
#else
#error "VALUES_PER_PACKET must be 56, 248 or 1016"
#endif

#undef VALUES_PER_PACKET
#define VALUES_PER_PACKET 256
#include "../shared/repeat.p4"
#undef VALUES_PER_PACKET
#undef REPEAT

#ifdef ROCE_VALUES_56
#define VALUES_PER_PACKET 56
#define REPEAT(M, ...) \
    REPEAT_FIRST_TEN(M, __VA_ARGS__) REPEAT_TEN(1, M, __VA_ARGS__) \
    REPEAT_TEN(2, M, __VA_ARGS__) REPEAT_TEN(3, M, __VA_ARGS__) \
    REPEAT_TEN(4, M, __VA_ARGS__) REPEAT_FOUR(5, M, __VA_ARGS__) \
    M(54, __VA_ARGS__) M(55, __VA_ARGS__)
#elif defined(ROCE_VALUES_248)
#define VALUES_PER_PACKET 248
#define REPEAT(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_HUNDRED(1, M, __VA_ARGS__) \
    REPEAT_TEN(20, M, __VA_ARGS__) REPEAT_TEN(21, M, __VA_ARGS__) REPEAT_TEN(22, M, __VA_ARGS__) \
    REPEAT_TEN(23, M, __VA_ARGS__) REPEAT_FOUR(24, M, __VA_ARGS__) M(244, __VA_ARGS__) \
    M(245, __VA_ARGS__) M(246, __VA_ARGS__) M(247, __VA_ARGS__)
#else
#define VALUES_PER_PACKET 1016
#define REPEAT(M, ...) \
    REPEAT_FIRST_HUNDRED(M, __VA_ARGS__) REPEAT_HUNDRED(1, M, __VA_ARGS__) \
    REPEAT_HUNDRED(2, M, __VA_ARGS__) REPEAT_HUNDRED(3, M, __VA_ARGS__) \
    REPEAT_HUNDRED(4, M, __VA_ARGS__) REPEAT_HUNDRED(5, M, __VA_ARGS__) \
    REPEAT_HUNDRED(6, M, __VA_ARGS__) REPEAT_HUNDRED(7, M, __VA_ARGS__) \
    REPEAT_HUNDRED(8, M, __VA_ARGS__) REPEAT_HUNDRED(9, M, __VA_ARGS__) \
    REPEAT_TEN(100, M, __VA_ARGS__) REPEAT_FOUR(101, M, __VA_ARGS__) M(1014, __VA_ARGS__) \
    M(1015, __VA_ARGS__)
#endif

#endif // INA_ROCE_REPEAT_P4
