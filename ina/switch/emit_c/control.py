"""The control side of a generated pipeline: life, tables, groups, counters, registers."""

from __future__ import annotations

from collections.abc import Callable

from ina.switch.emit.c_types import container
from ina.switch.emit.layout import Layout
from ina.switch.emit.writer import Writer
from ina.switch.emit_c.turns import record_words
from ina.switch.ir.program import ActionCall, KeyValue, MatchKind
from ina.switch.passes.tables import Lookup, TablePlan, words_of

_LOCK = "pthread_mutex_lock(&S->mutex);"
_UNLOCK = "pthread_mutex_unlock(&S->mutex);"


def emit_control(layout: Layout, out: Writer, digest: str) -> None:
    """Everything but process()."""
    for plan in layout.plan.tables:
        _emit_pack(layout, plan, out)
    _emit_actions(layout, out)
    _emit_tables(layout, out)
    _emit_lifecycle(layout, out)
    _emit_table_functions(out)
    _emit_counters(layout, out)
    _emit_turn_functions(layout, out)
    names = "create, destroy, process, table_insert, table_modify, table_delete, table_set_default"
    rest = "multicast_set, counter_read, counter_write, direct_counter_read, direct_counter_write"
    out.line("static const ina_pipeline pipeline = {")
    out.line(f'    INA_PIPELINE_ABI, "{digest}", {names},')
    out.line(f"    {rest}, register_read, register_write, clone_set, digest_take,")
    out.line("};")
    out.line()
    out.line("const ina_pipeline *ina_pipeline_get(void);")
    out.line("const ina_pipeline *ina_pipeline_get(void) { return &pipeline; }")


def _emit_pack(layout: Layout, plan: TablePlan, out: Writer) -> None:
    """ABI words of an entry to packed key and mask; false if the entry is malformed."""
    head = f"static bool {layout.table(plan)}_pack(const ina_entry *const e, uint64_t *const words)"
    with out.block(head):
        keys = plan.table.keys
        out.line(f"memset(words, 0, {max(16 * plan.key_words, 16)});")
        starts, at = [], 0
        for key in keys:
            starts.append(at)
            at += words_of(key.width_bits)
        for part in plan.parts:
            key = keys[part.field]
            bits = min(64, key.width_bits - 64 * part.field_word)
            index = starts[part.field] + part.field_word
            out.line(f"// {key.name}, {key.kind.value}")
            with out.block(""):
                out.line(f"const uint64_t value = e->key[{index}];")
                full = f"INA_MASK({bits})"
                if key.kind is MatchKind.EXACT:
                    out.line(f"const uint64_t mask = {full};")
                elif key.kind is MatchKind.LPM and plan.lookup is Lookup.LPM:
                    below = key.width_bits - 64 * part.field_word
                    out.line(
                        f"if (e->priority < 0 || e->priority > {key.width_bits}) return false;"
                    )
                    out.line(f"const int host = {below} - e->priority; // low bits not compared")
                    out.line(
                        f"const uint64_t mask = host <= 0 ? {full} : host >= {bits} ? 0 : "
                        f"{full} & ~INA_MASK(host);"
                    )
                else:
                    out.line(f"const uint64_t mask = e->mask[{index}];")
                if key.kind is MatchKind.RANGE:
                    out.line(f"if (value > mask || mask > {full}) return false;")
                else:
                    out.line(f"if (value & ~mask || mask & ~{full}) return false;")
                for name, word in (("value", part.word), ("mask", plan.key_words + part.word)):
                    if name == "value" or plan.lookup is not Lookup.EXACT:
                        swapped = part.swapped_bytes
                        code = f"ina_reverse({name}, {swapped})" if swapped else name
                        out.line(f"words[{word}] |= {code} << {part.shift};")
        out.line("(void)e;")
        out.line("return true;")
    out.line()


def _emit_actions(layout: Layout, out: Writer) -> None:
    out.line("/* Words of an action's parameters if the table may use it and they fit, else -1. */")
    with out.block(
        "static int action_words(uint32_t table, uint32_t action, const uint64_t *params)"
    ):
        with out.block("switch (table)"):
            for plan in layout.plan.tables:
                allowed = {action.index for action in plan.actions}
                out.line(f"case {plan.table.index}:")
                terms = " && ".join(f"action != {number}" for number in sorted(allowed))
                out.line(f"    if ({terms}) return -1;")
                out.line("    break;")
            out.line("default: return -1;")
        with out.block("switch (action)"):
            for action in layout.program.actions:
                if not action.params:
                    continue
                checks, at = [], 0
                for param in action.params:
                    words = words_of(param.width_bits)
                    top = param.width_bits - 64 * (words - 1)
                    if top < 64:
                        checks.append(f"params[{at + words - 1}] > INA_MASK({top})")
                    at += words
                test = f"{' || '.join(checks)} ? -1 : {at}" if checks else str(at)
                out.line(f"case {action.index}: return {test}; // {action.name}")
            out.line("default: return 0;")
        out.line("(void)params;")
    out.line()


def _emit_tables(layout: Layout, out: Writer) -> None:
    with out.block("static ina_table *table_at(state *const S, uint32_t table)"):
        out.line("(void)S;")
        with out.block("switch (table)"):
            for plan in layout.plan.tables:
                out.line(f"case {plan.table.index}: return &S->{layout.table(plan)};")
            out.line("default: return NULL;")
    out.line()
    most = max((plan.key_words for plan in layout.plan.tables), default=1) or 1
    out.line(f"#define INA_MOST_KEY_WORDS {most}")
    head = "static bool pack(uint32_t table, const ina_entry *const e, uint64_t *const words)"
    with out.block(head):
        out.line("(void)e;")
        out.line("(void)words;")
        with out.block("switch (table)"):
            for plan in layout.plan.tables:
                out.line(f"case {plan.table.index}: return {layout.table(plan)}_pack(e, words);")
            out.line("default: return false;")
    out.line()


def _call_words(layout: Layout, call: ActionCall) -> list[int]:
    words = []
    for value, param in zip(call.args, layout.program.actions[call.action].params, strict=True):
        value &= (1 << param.width_bits) - 1
        words += [(value >> 64 * i) & (2**64 - 1) for i in range(words_of(param.width_bits))]
    return words


def _list(words: list[int]) -> str:
    return ", ".join(f"UINT64_C({word:#x})" for word in words) or "0"


def _emit_lifecycle(layout: Layout, out: Writer) -> None:
    with out.block("static void destroy(void *const opaque)"):
        out.line("state *const S = opaque;")
        out.line("if (!S) return;")
        for plan in layout.plan.tables:
            out.line(f"ina_table_destroy(&S->{layout.table(plan)});")
        with out.block("for (uint32_t i = 0; S->groups && i < INA_GROUPS; i++)"):
            out.line("free(S->groups[i].replicas);")
        out.line("free(S->groups);")
        out.line("free(S->gathered);")
        if layout.program.turns:
            out.line("ina_clones_free(&S->clones);")
            out.line("free(S->turns);")
            out.line("free(S->digests.records);")
        out.line("pthread_mutex_destroy(&S->mutex);")
        out.line("free(S->memory);")
    out.line()
    for plan in layout.plan.tables:
        with out.block(f"static int {layout.table(plan)}_fill(state *const S)"):
            out.line(f"ina_table *const table = &S->{layout.table(plan)};")
            call = plan.table.default
            out.line(f"static const uint64_t params[] = {{{_list(_call_words(layout, call))}}};")
            out.line(
                f"ina_slot_set_action(table, ina_counter_slot(table, -1), {call.action}, params, "
                f"{len(_call_words(layout, call))});"
            )
            for entry in plan.table.entries:
                _emit_entry(layout, plan, entry.call, entry.priority, entry.key, out)
            out.line("return 0;")
        out.line()
    with out.block("static void *create(void)"):
        out.line("void *memory;")
        out.line("state *const S = ina_zeroed(sizeof *S, &memory);")
        out.line("if (!S) return NULL;")
        out.line("S->memory = memory;")
        out.line("pthread_mutex_init(&S->mutex, NULL);")
        out.line("S->most_replicas = 1;")
        out.line("S->groups = calloc(INA_GROUPS, sizeof *S->groups);")
        out.line("S->gathered = malloc(INA_MOST_GATHERED_BYTES);")
        out.line("bool ok = S->groups != NULL && S->gathered != NULL;")
        if layout.program.turns:
            _create_turns(layout, out)
        for plan in layout.plan.tables:
            name = layout.table(plan)
            arguments = f"&S->{name}, &{name}_spec, S->{name}_slots, S->{name}_index"
            out.line(f"ok = ok && ina_table_create({arguments}) == 0;")
            out.line(f"ok = ok && {layout.table(plan)}_fill(S) == 0;")
        out.line("if (ok) return S;")
        out.line("destroy(S);")
        out.line("return NULL;")
    out.line()


def _create_turns(layout: Layout, out: Writer) -> None:
    words = record_words(layout)
    out.line("S->turns = calloc(INA_MOST_TURNS, sizeof *S->turns);")
    out.line("S->clones.sessions = calloc(INA_SESSIONS, sizeof *S->clones.sessions);")
    out.line(f"S->digests.record_words = {words};")
    out.line(f"S->digests.records = calloc(INA_MOST_DIGESTS, {words} * sizeof(uint64_t));")
    out.line("ok = ok && S->turns && S->clones.sessions && S->digests.records;")


def _emit_turn_functions(layout: Layout, out: Writer) -> None:
    there = bool(layout.program.turns)
    clones, digests = ("S->clones", "S->digests") if there else ("none", "none")
    for head, declaration, code in (
        (
            "static int clone_set(void *const opaque, uint32_t session, "
            "const ina_replica *const replicas, uint32_t count, uint32_t most_bytes)",
            "ina_clones none = {NULL, 0};",
            f"ina_clone_set(&{clones}, session, replicas, count, most_bytes)",
        ),
        (
            "static int digest_take(void *const opaque, uint64_t *const words, uint32_t room)",
            "ina_digests none = {NULL, 0, 0, 0, 0};",
            f"ina_digest_take(&{digests}, words, room)",
        ),
    ):
        with out.block(head):
            out.line("state *const S = opaque;")
            if not there:
                out.line(declaration)
            out.line("pthread_mutex_lock(&S->mutex);")
            out.line(f"const int code = {code};")
            out.line("pthread_mutex_unlock(&S->mutex);")
            out.line("return code;")
        out.line()


def _emit_entry(
    layout: Layout,
    plan: TablePlan,
    call: ActionCall,
    priority: int,
    key: tuple[KeyValue, ...],
    out: Writer,
) -> None:
    values, masks = [], []
    for field, value in zip(plan.table.keys, key, strict=True):
        for i in range(words_of(field.width_bits)):
            values.append((value.value >> 64 * i) & (2**64 - 1))
            masks.append((value.mask >> 64 * i) & (2**64 - 1))
    params = _call_words(layout, call)
    with out.block(""):
        out.line(f"static const uint64_t key[] = {{{_list(values)}}}, mask[] = {{{_list(masks)}}};")
        out.line(f"static const uint64_t args[] = {{{_list(params)}}};")
        out.line(f"const ina_entry e = {{key, mask, {priority}, {call.action}, args}};")
        out.line(f"uint64_t words[{2 * max(plan.key_words, 1)}];")
        out.line(f"if (!{layout.table(plan)}_pack(&e, words)) return -1;")
        out.line(
            f"const int64_t code = ina_table_insert(table, words, {priority}, {call.action}, args, "
            f"{len(params)});"
        )
        out.line("if (code < 0 && code != INA_EXISTS) return -1;")


def _emit_table_functions(out: Writer) -> None:
    """The same text for every program."""
    out.lines.extend(_TABLE_FUNCTIONS.strip("\n").split("\n"))
    out.line()


def _emit_counters(layout: Layout, out: Writer) -> None:
    program = layout.program
    with out.block(
        "static ina_counter *counter_at(state *const S, uint32_t counter, uint64_t index)"
    ):
        out.line("(void)S;")
        out.line("(void)index;")
        with out.block("switch (counter)"):
            for counter in program.counters:
                name = layout.counter(counter.name)
                out.line(
                    f"case {counter.index}: "
                    f"return index < {counter.size} ? &S->{name}[index] : NULL;"
                )
            out.line("default: return NULL;")
    out.line()
    out.lines.extend(_COUNTER_FUNCTIONS.strip("\n").split("\n"))
    out.line()
    _emit_register_access(layout, out, "register_read", "uint64_t *value", _read_cell)
    _emit_register_access(layout, out, "register_write", "uint64_t value", _write_cell)


def _read_cell(cell: str, _: int) -> str:
    return f"*value = (uint64_t){cell};"


def _write_cell(cell: str, width_bits: int) -> str:
    mask = hex((1 << min(width_bits, 64)) - 1)
    return f"{cell} = ({container(width_bits)})(value & UINT64_C({mask}));"


def _emit_register_access(
    layout: Layout, out: Writer, name: str, value: str, access: Callable[[str, int], str]
) -> None:
    """``access``: what is done with a cell of so many bits."""
    head = f"static int {name}(void *const opaque, uint32_t reg, uint64_t index, {value})"
    with out.block(head):
        out.line("state *const S = opaque;")
        out.line("int code = INA_NOT_FOUND;")
        out.line(_LOCK)
        with out.block("switch (reg)"):
            for register in layout.program.registers:
                group = layout.group(register.name)
                cell = f"S->{group.c_name}[index].{group.members[register.name]}"
                with out.block(f"case {register.index}:"):
                    with out.block(f"if (index < {register.size})"):
                        out.line(access(cell, register.width_bits))
                        out.line("code = INA_OK;")
                    out.line("break;")
            out.line("default: break;")
        out.line(_UNLOCK)
        out.line("(void)index;")
        out.line("(void)value;")
        out.line("return code;")
    out.line()


_TABLE_FUNCTIONS = """
static int64_t table_insert(void *const opaque, uint32_t number, const ina_entry *const entry) {
    state *const S = opaque;
    ina_table *const table = table_at(S, number);
    uint64_t words[2 * INA_MOST_KEY_WORDS];
    if (!table || table->spec->is_const || table->spec->key_words == 0) return INA_INVALID;
    const int param_words = action_words(number, entry->action, entry->params);
    if (param_words < 0 || !pack(number, entry, words)) return INA_INVALID;
    pthread_mutex_lock(&S->mutex);
    const int64_t code = ina_table_insert(table, words, entry->priority, entry->action,
                                          entry->params, (uint32_t)param_words);
    pthread_mutex_unlock(&S->mutex);
    return code;
}

static int table_modify(void *const opaque, uint32_t number, int64_t handle, uint32_t action,
                        const uint64_t *const params) {
    state *const S = opaque;
    ina_table *const table = table_at(S, number);
    if (!table || table->spec->is_const) return INA_INVALID;
    const int param_words = action_words(number, action, params);
    if (param_words < 0) return INA_INVALID;
    pthread_mutex_lock(&S->mutex);
    ina_slot *const slot = ina_table_slot(table, handle);
    if (slot) ina_slot_set_action(table, slot, action, params, (uint32_t)param_words);
    pthread_mutex_unlock(&S->mutex);
    return slot ? INA_OK : INA_NOT_FOUND;
}

static int table_delete(void *const opaque, uint32_t number, int64_t handle) {
    state *const S = opaque;
    ina_table *const table = table_at(S, number);
    if (!table || table->spec->is_const) return INA_INVALID;
    pthread_mutex_lock(&S->mutex);
    const int code = ina_table_delete(table, handle);
    pthread_mutex_unlock(&S->mutex);
    return code;
}

static int table_set_default(void *const opaque, uint32_t number, uint32_t action,
                             const uint64_t *const params) {
    state *const S = opaque;
    ina_table *const table = table_at(S, number);
    if (!table || table->spec->default_is_const) return INA_INVALID;
    const int param_words = action_words(number, action, params);
    if (param_words < 0) return INA_INVALID;
    pthread_mutex_lock(&S->mutex);
    ina_slot_set_action(table, ina_counter_slot(table, -1), action, params, (uint32_t)param_words);
    pthread_mutex_unlock(&S->mutex);
    return INA_OK;
}

static int multicast_set(void *const opaque, uint32_t group, const ina_replica *const replicas,
                         uint32_t count) {
    state *const S = opaque;
    pthread_mutex_lock(&S->mutex);
    const int code = ina_group_set(S->groups, &S->most_replicas, group, replicas, count);
    pthread_mutex_unlock(&S->mutex);
    return code;
}

static int direct_counter_read(void *const opaque, uint32_t number, int64_t handle,
                               uint64_t *packets, uint64_t *bytes) {
    state *const S = opaque;
    ina_table *const table = table_at(S, number);
    if (!table) return INA_INVALID;
    pthread_mutex_lock(&S->mutex);
    const ina_slot *const slot = ina_counter_slot(table, handle);
    if (slot) {
        *packets = slot->packets;
        *bytes = slot->bytes;
    }
    pthread_mutex_unlock(&S->mutex);
    return slot ? INA_OK : INA_NOT_FOUND;
}

static int direct_counter_write(void *const opaque, uint32_t number, int64_t handle,
                                uint64_t packets, uint64_t bytes) {
    state *const S = opaque;
    ina_table *const table = table_at(S, number);
    if (!table) return INA_INVALID;
    pthread_mutex_lock(&S->mutex);
    ina_slot *const slot = ina_counter_slot(table, handle);
    if (slot) {
        slot->packets = packets;
        slot->bytes = bytes;
    }
    pthread_mutex_unlock(&S->mutex);
    return slot ? INA_OK : INA_NOT_FOUND;
}
"""

_COUNTER_FUNCTIONS = """
static int counter_read(void *const opaque, uint32_t counter, uint64_t index, uint64_t *packets,
                        uint64_t *bytes) {
    state *const S = opaque;
    pthread_mutex_lock(&S->mutex);
    const ina_counter *const at = counter_at(S, counter, index);
    if (at) {
        *packets = at->packets;
        *bytes = at->bytes;
    }
    pthread_mutex_unlock(&S->mutex);
    return at ? INA_OK : INA_NOT_FOUND;
}

static int counter_write(void *const opaque, uint32_t counter, uint64_t index, uint64_t packets,
                         uint64_t bytes) {
    state *const S = opaque;
    pthread_mutex_lock(&S->mutex);
    ina_counter *const at = counter_at(S, counter, index);
    if (at) *at = (ina_counter){packets, bytes};
    pthread_mutex_unlock(&S->mutex);
    return at ? INA_OK : INA_NOT_FOUND;
}
"""
