/* Match-action tables. Keys are packed into 64-bit words by generated code.
 *
 *   exact         open addressing over the key
 *   lpm           the same with one probe for each prefix length in use, longest first
 *   scan          ternary, range, optional: entries in order of priority, the first match wins
 *
 * Entries live in one array, so that a handle is a position (and a generation, so that a stale
 * handle is noticed). Nothing is allocated while packets flow. */
#ifndef INA_TABLE_H
#define INA_TABLE_H

#include "ina_base.h"
#include "pipeline_abi.h"

typedef struct {
    uint64_t packets, bytes; /* the direct counter */
    uint32_t action;         /* index in the program's action list */
    int32_t priority;
    uint32_t generation;
    uint32_t next_free; /* position + 1; INA_IN_USE while the entry is in the table */
    uint64_t words[];   /* key, mask (not for exact), parameters */
} ina_slot;

#define INA_IN_USE UINT32_MAX
#define INA_MAX_KEY_WORDS 64

enum { INA_EXACT, INA_LPM, INA_SCAN };

typedef struct {
    uint32_t kind, key_words, param_words, capacity;
    uint64_t range_words; /* bit w: word w of the key is a range low..high, not value and mask */
    bool is_const, default_is_const;
} ina_table_spec;

typedef struct {
    uint64_t *mask; /* key_words */
    int32_t prefix;
    uint32_t uses;
} ina_prefix;

typedef struct {
    const ina_table_spec *spec;
    uint8_t *slots; /* capacity + 1: the last one is the default entry */
    size_t slot_bytes;
    ina_slot *last; /* an exact one-word key: the entry that was found last, else the default one */
    uint32_t count, free_head;
    /* exact, lpm: (position + 1) * slot_bytes, 0 is empty, INA_INDEX_ROOM of them;
     * scan: positions, best first, capacity of them */
    uint32_t *index;
    ina_prefix *prefixes;
    uint32_t prefix_count, prefix_room;
} ina_table;

INA_INLINE ina_slot *ina_slot_at(const ina_table *table, size_t slot_bytes, uint32_t position) {
    return (ina_slot *)(table->slots + (size_t)position * slot_bytes);
}

/* Of an entry. A constant where its arguments are: generated code declares arrays with it. */
#define INA_SLOT_BYTES(kind, key_words, param_words)                                               \
    (sizeof(ina_slot) +                                                                            \
     8 * ((size_t)(key_words) * ((kind) == INA_EXACT ? 1 : 2) + (size_t)(param_words)))

/* Places in the index of an exact or LPM table, a power of two: at most half of them are taken.
 * A constant as INA_SLOT_BYTES. */
#define INA_INDEX_ROOM(capacity)                                                                   \
    (2 * (uint64_t)(capacity) <= 16 ? UINT32_C(16)                                                 \
     : 2 * (uint64_t)(capacity) > UINT32_C(1) << 31                                                \
         ? UINT32_C(1) << 31                                                                       \
         : UINT32_C(1) << (64 - __builtin_clzll(2 * (uint64_t)(capacity) - 1)))

INA_INLINE const uint64_t *ina_slot_params(const ina_slot *slot, uint32_t kind,
                                           uint32_t key_words) {
    return slot->words + key_words * (kind == INA_EXACT ? 1 : 2);
}

INA_INLINE uint32_t ina_key_hash(const uint64_t *key, uint32_t key_words) {
#ifdef __SSE4_2__
    uint64_t hash = UINT32_MAX;
    for (uint32_t i = 0; i < key_words; i++) hash = __builtin_ia32_crc32di(hash, key[i]);
#else
    uint64_t hash = 0;
    for (uint32_t i = 0; i < key_words; i++) {
        hash = (hash ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 32;
    }
#endif
    return (uint32_t)hash;
}

INA_INLINE bool ina_key_equal(const uint64_t *a, const uint64_t *b, uint32_t key_words) {
    for (uint32_t i = 0; i < key_words; i++)
        if (a[i] != b[i]) return false;
    return true;
}

/* Looks on at place `at` of the index. Apart: a loop in the way of every packet would make the
 * compiler keep all that it uses in registers. */
INA_APART ina_slot *ina_find_from(const ina_table *table, uint32_t at, const uint64_t *key,
                                  int32_t prefix) {
    const ina_table_spec *const spec = table->spec;
    const uint32_t mask = INA_INDEX_ROOM(spec->capacity) - 1;
    for (;; at++) {
        const uint32_t offset = table->index[at & mask];
        if (offset == 0) return NULL;
        ina_slot *const slot = (ina_slot *)(table->slots - table->slot_bytes + offset);
        if (ina_key_equal(slot->words, key, spec->key_words) &&
            (spec->kind != INA_LPM || slot->priority == prefix))
            return slot;
    }
}

/* The entry of the exact key, or NULL. LPM entries also compare their prefix length. */
INA_INLINE ina_slot *ina_find(const ina_table *table, uint8_t *slots, const uint32_t *index,
                              uint32_t capacity, uint32_t kind, uint32_t key_words,
                              size_t slot_bytes, const uint64_t *key, int32_t prefix) {
    const uint32_t at = ina_key_hash(key, key_words) + (uint32_t)prefix;
    const uint32_t offset = index[at & (INA_INDEX_ROOM(capacity) - 1)];
    if (INA_UNLIKELY(offset == 0)) return NULL;
    ina_slot *slot = (ina_slot *)(slots - slot_bytes + offset);
    INA_ONE_REGISTER(slot);
    if (INA_LIKELY(ina_key_equal(slot->words, key, key_words) &&
                   (kind != INA_LPM || slot->priority == prefix)))
        return slot;
    uint64_t copy[INA_MAX_KEY_WORDS]; /* so that key itself need not be in memory */
    for (uint32_t i = 0; i < key_words; i++) copy[i] = key[i];
    return ina_find_from(table, at + 1, copy, prefix);
}

INA_INLINE bool ina_slot_matches(const ina_slot *slot, const uint64_t *key, uint32_t key_words,
                                 uint64_t range_words) {
    const uint64_t *value = slot->words, *mask = slot->words + key_words;
    bool match = true;
    for (uint32_t i = 0; i < key_words; i++) {
        if (range_words >> i & 1)
            match &= key[i] >= value[i] && key[i] <= mask[i];
        else
            match &= (key[i] & mask[i]) == value[i];
    }
    return match;
}

/* The key word of a default entry whose table remembers its last entry: no key is that. */
#define INA_NO_KEY UINT64_MAX

/* As ina_lookup, for one-word keys of less than 64 bits. Packets come in bursts of one flow, so the
 * entry of the last one is tried first. */
INA_INLINE ina_slot *ina_lookup_again(ina_table *table, uint8_t *slots, const uint32_t *index,
                                      uint32_t param_words, uint32_t capacity, uint64_t key,
                                      bool *hit) {
    const size_t slot_bytes = INA_SLOT_BYTES(INA_EXACT, 1, param_words);
    ina_slot *found = table->last;
    *hit = true;
    if (INA_LIKELY(found->words[0] == key)) return found;
    found = ina_find(table, slots, index, capacity, INA_EXACT, 1, slot_bytes, &key, 0);
    *hit = found != NULL;
    if (found) return table->last = found;
    return (ina_slot *)(slots + slot_bytes * capacity);
}

/* The matching entry or the default entry. All but table and key are constants at the call; slots
 * and index are the table's, at a constant place in the state. */
INA_INLINE ina_slot *ina_lookup(const ina_table *table, uint8_t *slots, const uint32_t *index,
                                uint32_t kind, uint32_t key_words, uint32_t param_words,
                                uint32_t capacity, uint64_t range_words, const uint64_t *key,
                                bool *hit) {
    const size_t slot_bytes = INA_SLOT_BYTES(kind, key_words, param_words);
    ina_slot *found = NULL;
    if (key_words == 0) {
        found = NULL; /* a table without a key runs its default action */
    } else if (kind == INA_EXACT) {
        found = ina_find(table, slots, index, capacity, kind, key_words, slot_bytes, key, 0);
    } else if (kind == INA_LPM) {
        for (uint32_t i = 0; i < table->prefix_count && !found; i++) {
            uint64_t masked[INA_MAX_KEY_WORDS];
            for (uint32_t w = 0; w < key_words; w++)
                masked[w] = key[w] & table->prefixes[i].mask[w];
            found = ina_find(table, slots, index, capacity, kind, key_words, slot_bytes, masked,
                             table->prefixes[i].prefix);
        }
    } else {
        for (uint32_t i = 0; i < table->count && !found; i++) {
            ina_slot *const slot = (ina_slot *)(slots + slot_bytes * index[i]);
            if (ina_slot_matches(slot, key, key_words, range_words)) found = slot;
        }
    }
    *hit = found != NULL;
    return found ? found : (ina_slot *)(slots + slot_bytes * capacity);
}

#include "ina_table_control.h"

#endif /* INA_TABLE_H */
