/* Tables in an array that user space writes while programs read it: words of 64 bits, each of which
 * is written at once. An entry is written to a place that nobody looks at, and then its place is
 * told, by one word; so it is found as it was or as it is. Nothing here calls the kernel. */
#ifndef INA_PLACED_H
#define INA_PLACED_H

#include "ina_bpf.h"

#define INA_PROBES 32u /* places of the index that may have a key */

/* 0, and the kernel's verifier does not know: a value that is this or another is one way to it, not
 * two, and it goes all ways. */
volatile uint32_t ina_nothing[2] SEC(".data.nothing");

INA_INLINE uint32_t ina_zero(void) { return ina_nothing[0]; }

/* Of the index: 0: nothing is here or behind it, `places` and more: it was here once. */
INA_INLINE ina_entry *ina_find(volatile uint64_t *table, uint32_t index_words, uint32_t places,
                               const uint64_t *key, uint32_t key_words, uint32_t entry_words,
                               volatile uint64_t *defaults, bool *hit) {
    uint64_t hash = 0;
    for (uint32_t i = 0; i < key_words; i++) {
        hash = (hash ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
    *hit = false;
    for (uint32_t probe = 0; probe < INA_PROBES; probe++) {
        const uint64_t place = table[(uint32_t)(hash + probe) & (index_words - 1)];
        if (place == 0) break;
        if (place >= places) continue;
        volatile uint64_t *const at = table + index_words + place * (key_words + entry_words);
        bool same = true;
        for (uint32_t i = 0; i < key_words; i++) same &= at[i] == key[i];
        if (!same) continue;
        *hit = true;
        return (ina_entry *)(at + key_words);
    }
    return ina_default(defaults, entry_words);
}

/* 1 where a < b, without a branch. */
INA_INLINE uint64_t ina_less(uint64_t a, uint64_t b) {
    return ((~a & b) | ((~a | b) & (a - b))) >> 63;
}

/* A place has its rank (0: nothing is here), its own number, key, mask and entry. There is no
 * branch but that of the loop: the kernel's verifier, which goes all ways, would never come to an
 * end. */
INA_INLINE ina_entry *ina_scan(volatile uint64_t *table, uint32_t places, const uint64_t *key,
                               uint32_t key_words, uint64_t range_words, uint32_t entry_words,
                               volatile uint64_t *defaults, bool *hit) {
    const uint32_t place_words = 2 + 2 * key_words + entry_words;
    const uint64_t count = table[0];
    uint64_t best = 0, best_rank = 0;
    for (uint32_t place = 0; place < places; place++) {
        if (place >= count) break;
        volatile uint64_t *const at = table + 1 + place * place_words;
        const uint64_t rank = at[0];
        uint64_t differs = 0;
        for (uint32_t i = 0; i < key_words; i++) {
            const uint64_t value = at[2 + i], mask = at[2 + key_words + i];
            if (range_words >> i & 1)
                differs |= ina_less(key[i], value) | ina_less(mask, key[i]);
            else
                differs |= (key[i] & mask) ^ value;
        }
        uint64_t taken = ina_less(best_rank, rank) & ~ina_less(0, differs);
        INA_ONE_REGISTER(taken);
        taken = -taken;
        best_rank ^= (best_rank ^ rank) & taken;
        best ^= (best ^ at[1]) & taken;
    }
    *hit = best_rank != 0 && best < places;
    if (!*hit) return ina_default(defaults, entry_words);
    return (ina_entry *)(table + 1 + best * place_words + 2 + 2 * key_words);
}

#endif /* INA_PLACED_H */
