/* The control side of a table: create, insert, modify, delete, defaults, direct counters. */
#ifndef INA_TABLE_CONTROL_H
#define INA_TABLE_CONTROL_H

/* slots and index: zero, as many as the fields of ina_table say, not to be freed here. */
static inline int ina_table_create(ina_table *table, const ina_table_spec *spec, uint8_t *slots,
                                   uint32_t *index) {
    memset(table, 0, sizeof *table);
    table->spec = spec;
    table->slot_bytes = INA_SLOT_BYTES(spec->kind, spec->key_words, spec->param_words);
    table->slots = slots;
    table->index = index;
    if ((uint64_t)spec->capacity * table->slot_bytes > UINT32_MAX) return -1; /* of the index */
    for (uint32_t i = 0; i < spec->capacity; i++)
        ina_slot_at(table, table->slot_bytes, i)->next_free = i + 2 <= spec->capacity ? i + 2 : 0;
    table->free_head = 1;
    table->last = ina_slot_at(table, table->slot_bytes, spec->capacity);
    if (spec->kind == INA_EXACT && spec->key_words == 1) table->last->words[0] = INA_NO_KEY;
    return 0;
}

static inline void ina_table_destroy(ina_table *table) {
    for (uint32_t i = 0; i < table->prefix_count; i++) free(table->prefixes[i].mask);
    free(table->prefixes);
}

INA_INLINE ina_slot *ina_table_slot(const ina_table *table, int64_t handle) {
    const uint32_t position = (uint32_t)handle;
    if (handle < 0 || position >= table->spec->capacity) return NULL;
    ina_slot *slot = ina_slot_at(table, table->slot_bytes, position);
    if (slot->next_free != INA_IN_USE || slot->generation != (uint32_t)(handle >> 32)) return NULL;
    return slot;
}

INA_INLINE uint64_t *ina_slot_mask(const ina_table *table, ina_slot *slot) {
    return slot->words + table->spec->key_words;
}

/* What the index says of a position. */
INA_INLINE uint32_t ina_index_entry(const ina_table *table, uint32_t position) {
    return (uint32_t)((position + 1) * table->slot_bytes);
}

static inline void ina_index_put(ina_table *table, uint32_t position, int32_t prefix) {
    const ina_slot *slot = ina_slot_at(table, table->slot_bytes, position);
    uint32_t at = ina_key_hash(slot->words, table->spec->key_words) + (uint32_t)prefix;
    const uint32_t mask = INA_INDEX_ROOM(table->spec->capacity) - 1;
    while (table->index[at & mask]) at++;
    table->index[at & mask] = ina_index_entry(table, position);
}

static inline uint32_t ina_index_home(const ina_table *table, uint32_t position) {
    const ina_slot *slot = ina_slot_at(table, table->slot_bytes, position);
    const int32_t prefix = table->spec->kind == INA_LPM ? slot->priority : 0;
    return (ina_key_hash(slot->words, table->spec->key_words) + (uint32_t)prefix) &
           (INA_INDEX_ROOM(table->spec->capacity) - 1);
}

/* Takes a position out and closes the gap, so that no search ends early. */
static inline void ina_index_remove(ina_table *table, uint32_t position) {
    const uint32_t mask = INA_INDEX_ROOM(table->spec->capacity) - 1;
    uint32_t hole = ina_index_home(table, position);
    while (table->index[hole] != ina_index_entry(table, position)) hole = (hole + 1) & mask;
    for (uint32_t at = (hole + 1) & mask; table->index[at]; at = (at + 1) & mask) {
        const uint32_t home =
            ina_index_home(table, (uint32_t)(table->index[at] / table->slot_bytes - 1));
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            table->index[hole] = table->index[at];
            hole = at;
        }
    }
    table->index[hole] = 0;
}

static inline int ina_prefix_add(ina_table *table, int32_t prefix, const uint64_t *mask) {
    uint32_t at = 0;
    while (at < table->prefix_count && table->prefixes[at].prefix > prefix) at++;
    if (at < table->prefix_count && table->prefixes[at].prefix == prefix) {
        table->prefixes[at].uses++;
        return 0;
    }
    if (table->prefix_count == table->prefix_room) {
        const uint32_t room = table->prefix_room ? 2 * table->prefix_room : 8;
        ina_prefix *more = realloc(table->prefixes, room * sizeof *more);
        if (!more) return -1;
        table->prefixes = more;
        table->prefix_room = room;
    }
    uint64_t *copy = malloc(8 * table->spec->key_words);
    if (!copy) return -1;
    memcpy(copy, mask, 8 * table->spec->key_words);
    memmove(table->prefixes + at + 1, table->prefixes + at,
            (table->prefix_count - at) * sizeof *table->prefixes);
    table->prefixes[at] = (ina_prefix){copy, prefix, 1};
    table->prefix_count++;
    return 0;
}

static inline void ina_prefix_drop(ina_table *table, int32_t prefix) {
    uint32_t at = 0;
    while (table->prefixes[at].prefix != prefix) at++;
    if (--table->prefixes[at].uses) return;
    free(table->prefixes[at].mask);
    table->prefix_count--;
    memmove(table->prefixes + at, table->prefixes + at + 1,
            (table->prefix_count - at) * sizeof *table->prefixes);
}

/* Scan tables: does an entry with this key, mask and priority exist? */
static inline bool ina_scan_has(const ina_table *table, const uint64_t *key_and_mask,
                                int32_t priority) {
    for (uint32_t i = 0; i < table->count; i++) {
        const ina_slot *slot = ina_slot_at(table, table->slot_bytes, table->index[i]);
        if (slot->priority == priority &&
            memcmp(slot->words, key_and_mask, 16 * table->spec->key_words) == 0)
            return true;
    }
    return false;
}

/* Parameters that the action lacks are 0: the main path may read them. */
static inline void ina_slot_set_action(const ina_table *table, ina_slot *slot, uint32_t action,
                                       const uint64_t *params, uint32_t param_words) {
    const uint64_t *from = ina_slot_params(slot, table->spec->kind, table->spec->key_words);
    uint64_t *const at = (uint64_t *)(uintptr_t)from;
    memcpy(at, params, 8 * param_words);
    memset(at + param_words, 0, 8 * (table->spec->param_words - param_words));
    slot->action = action;
}

/* words: packed key (masked), then packed mask for all but exact tables. */
static inline int64_t ina_table_insert(ina_table *table, const uint64_t *words, int32_t priority,
                                       uint32_t action, const uint64_t *params,
                                       uint32_t param_words) {
    const ina_table_spec *spec = table->spec;
    const size_t key_bytes = 8 * spec->key_words * (spec->kind == INA_EXACT ? 1u : 2u);
    if (spec->key_words == 0) return INA_INVALID;
    if (spec->kind == INA_SCAN ? ina_scan_has(table, words, priority)
                               : ina_find_from(table,
                                               ina_key_hash(words, spec->key_words) +
                                                   (uint32_t)(spec->kind == INA_LPM ? priority : 0),
                                               words, spec->kind == INA_LPM ? priority : 0) != NULL)
        return INA_EXISTS;
    if (table->free_head == 0) return INA_FULL;
    const uint32_t position = table->free_head - 1;
    ina_slot *slot = ina_slot_at(table, table->slot_bytes, position);
    if (spec->kind == INA_LPM && ina_prefix_add(table, priority, words + spec->key_words))
        return INA_FULL;
    table->free_head = slot->next_free;
    slot->next_free = INA_IN_USE;
    slot->generation = (slot->generation + 1) & INT32_MAX;
    slot->packets = slot->bytes = 0;
    slot->priority = priority;
    memcpy(slot->words, words, key_bytes);
    ina_slot_set_action(table, slot, action, params, param_words);
    if (spec->kind == INA_SCAN) {
        uint32_t at = table->count;
        while (at > 0 &&
               ina_slot_at(table, table->slot_bytes, table->index[at - 1])->priority < priority) {
            table->index[at] = table->index[at - 1];
            at--;
        }
        table->index[at] = position;
    } else {
        ina_index_put(table, position, spec->kind == INA_LPM ? priority : 0);
    }
    table->count++;
    return (int64_t)slot->generation << 32 | position;
}

static inline int ina_table_delete(ina_table *table, int64_t handle) {
    ina_slot *slot = ina_table_slot(table, handle);
    if (!slot) return INA_NOT_FOUND;
    const uint32_t position = (uint32_t)handle;
    if (table->spec->kind == INA_SCAN) {
        uint32_t at = 0;
        while (table->index[at] != position) at++;
        memmove(table->index + at, table->index + at + 1,
                (table->count - at - 1) * sizeof *table->index);
    } else {
        ina_index_remove(table, position);
        if (table->spec->kind == INA_LPM) ina_prefix_drop(table, slot->priority);
    }
    table->count--;
    if (table->last == slot)
        table->last = ina_slot_at(table, table->slot_bytes, table->spec->capacity);
    slot->next_free = table->free_head;
    table->free_head = position + 1;
    return INA_OK;
}

INA_INLINE ina_slot *ina_counter_slot(const ina_table *table, int64_t handle) {
    if (handle == -1) return ina_slot_at(table, table->slot_bytes, table->spec->capacity);
    return ina_table_slot(table, handle);
}

#endif /* INA_TABLE_CONTROL_H */
