"""Tables of each match kind against a naive model: all entries, the best match."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from ina.switch.errors import (
    EntryExistsError,
    EntryNotFoundError,
    InvalidEntryError,
    TableFullError,
)
from ina.switch.match import Exact, Lpm, Optional, Range, Ternary
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target
from tests.switch.emit_c.conftest import PROGRAMS, Load

TABLES = ["exact_t", "lpm_t", "ternary_t", "range_t", "optional_t"]
SET, NONE = "MyIngress.set", "MyIngress.none"
NO_ENTRY = 0xFFFF


def look_up(pipeline: Pipeline, table: str, a: int, b: int, c: int) -> int:
    packet = struct.pack(">IHBBH", a, b, c, TABLES.index(table), 0)
    [(_, out)] = pipeline.process(0, packet)
    return int(struct.unpack(">IHBBH", out)[4])


@dataclass
class Entry:
    key: list[Any]
    priority: int
    value: int
    handle: int

    def matches(self, fields: list[int]) -> bool:
        for match, field in zip(self.key, fields, strict=True):
            if isinstance(match, Exact):
                good = field == match.value
            elif isinstance(match, Lpm):
                good = (field ^ match.value) >> (32 - match.prefix_bits) == 0
            elif isinstance(match, Ternary):
                good = field & match.mask == match.value
            elif isinstance(match, Range):
                good = match.low <= field <= match.high
            else:
                good = match.value is None or field == match.value
            if not good:
                return False
        return True


SMALL = st.integers(0, 3)
A = st.sampled_from([0, 1, 2, 0x0A000000, 0x0A000001, 0x0A010000, 0xFFFFFFFF])


def lpm(value: int, prefix: int) -> Lpm:
    return Lpm(value >> (32 - prefix) << (32 - prefix), prefix)


@st.composite
def keys(draw: st.DrawFn, table: str) -> list[Any]:
    if table == "exact_t":
        return [Exact(draw(A)), Exact(draw(SMALL))]
    if table == "lpm_t":
        return [lpm(draw(A), draw(st.sampled_from([0, 8, 15, 16, 31, 32]))), Exact(draw(SMALL))]
    if table == "ternary_t":
        masks = [draw(st.sampled_from([0, 1, 0xFF000000, 0xFFFFFFFF])), draw(SMALL)]
        values = [draw(A), draw(SMALL)]
        return [Ternary(v & m, m) for v, m in zip(values, masks, strict=True)]
    if table == "range_t":
        low, high = sorted([draw(SMALL), draw(SMALL)])
        return [Range(low, high), Exact(draw(SMALL))]
    return [Optional(draw(st.none() | A)), Optional(draw(st.none() | SMALL))]


class TableMachine(RuleBasedStateMachine):
    """Random inserts, deletes, modifications and look-ups in one table."""

    cache: Any = None

    @initialize(table=st.sampled_from(TABLES))
    def start(self, table: str) -> None:
        self.table = table
        self.pipeline = default_target(type(self).cache).load(PROGRAMS / "tables.json")
        self.entries: list[Entry] = []

    def teardown(self) -> None:
        if hasattr(self, "pipeline"):
            self.pipeline.close()

    @property
    def name(self) -> str:
        return f"MyIngress.{self.table}"

    @rule(data=st.data(), value=st.integers(0, 0xFFF0), priority=st.integers(0, 3))
    def insert(self, data: st.DataObject, value: int, priority: int) -> None:
        key = data.draw(keys(self.table))
        if self.table == "lpm_t":
            priority = key[0].prefix_bits
        elif self.table == "exact_t":
            priority = 0
        same = [e for e in self.entries if (e.key, e.priority) == (key, priority)]
        if same:
            with pytest.raises(EntryExistsError):
                self.pipeline.insert(self.name, key, SET, [value], priority)
            return
        handle = self.pipeline.insert(self.name, key, SET, [value], priority)
        self.entries.append(Entry(key, priority, value, handle))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        if self.entries:
            entry = data.draw(st.sampled_from(self.entries))
            self.pipeline.delete(self.name, entry.handle)
            self.entries.remove(entry)
            with pytest.raises(EntryNotFoundError):
                self.pipeline.delete(self.name, entry.handle)

    @rule(data=st.data(), value=st.integers(0, 0xFFF0))
    def modify(self, data: st.DataObject, value: int) -> None:
        if self.entries:
            entry = data.draw(st.sampled_from(self.entries))
            self.pipeline.modify(self.name, entry.handle, SET, [value])
            entry.value = value

    @rule(a=A, b=SMALL, c=SMALL)
    def look_up(self, a: int, b: int, c: int) -> None:
        fields = {"exact_t": [a, b], "lpm_t": [a, c], "ternary_t": [a, b], "range_t": [b, c]}
        matching = [e for e in self.entries if e.matches(fields.get(self.table, [a, c]))]
        best = max((e.priority for e in matching), default=None)
        allowed = {e.value for e in matching if e.priority == best} or {NO_ENTRY}
        assert look_up(self.pipeline, self.table, a, b, c) in allowed

    @invariant()
    def first_of_equals_wins(self) -> None:
        """Entries of equal priority: the one that was added first."""
        if getattr(self, "table", "") == "ternary_t" and self.entries:
            matching = [e for e in self.entries if e.matches([0, 0])]
            if matching:
                best = max(matching, key=lambda e: e.priority)
                assert look_up(self.pipeline, self.table, 0, 0, 0) == best.value


@pytest.mark.timeout(240)
def test_the_entry_found_last_is_forgotten_with_its_removal(load: Load) -> None:
    pipeline = load("tables")
    assert pipeline.generated is not None
    assert "ina_lookup_again(&S->MyIngress_exact_t" in pipeline.generated.read_text()

    def seen(a: int) -> int:
        return look_up(pipeline, "exact_t", a, 1, 0)

    def add(a: int, value: int) -> int:
        return pipeline.insert("MyIngress.exact_t", [Exact(a), Exact(1)], SET, [value])

    first, _ = add(1, 11), add(2, 22)
    assert [seen(a) for a in (1, 1, 2, 1, 2, 2)] == [11, 11, 22, 11, 22, 22]
    assert seen(1) == 11
    pipeline.delete("MyIngress.exact_t", first)
    assert seen(1) == NO_ENTRY
    assert seen(2) == 22
    again = add(1, 12)
    assert seen(1) == 12
    pipeline.modify("MyIngress.exact_t", again, SET, [13])
    assert seen(1) == 13
    pipeline.delete("MyIngress.exact_t", again)
    add(3, 33)  # where the removed entry was
    assert [seen(a) for a in (1, 3, 0xFFFFFFFF, 0)] == [NO_ENTRY, 33, NO_ENTRY, NO_ENTRY]


def test_tables_match_the_model(cache_dir: Any) -> None:
    from hypothesis.stateful import run_state_machine_as_test

    TableMachine.cache = cache_dir
    run_state_machine_as_test(
        TableMachine, settings=settings(deadline=None, max_examples=60, stateful_step_count=30)
    )


def test_a_full_table_says_so(load: Load) -> None:
    pipeline = load("tables")
    for number in range(64):
        pipeline.insert("MyIngress.exact_t", [Exact(number), Exact(0)], SET, [number])
    with pytest.raises(TableFullError, match="exact_t is full"):
        pipeline.insert("MyIngress.exact_t", [Exact(64), Exact(0)], SET, [1])
    assert [look_up(pipeline, "exact_t", n, 0, 0) for n in range(64)] == list(range(64))


def test_constant_entries_in_the_order_of_the_program(load: Load) -> None:
    pipeline = load("tables")

    def result(b: int, c: int) -> tuple[int, int]:
        [(_, out)] = pipeline.process(0, struct.pack(">IHBBH", 0, b, c, 9, 0))
        fields = struct.unpack(">IHBBH", out)
        return fields[4], fields[2]

    assert result(0x0123, 9) == (1, 0xAA)
    assert result(0x0123, 10) == (2, 0xAA)
    assert result(0x4123, 3) == (2, 0xAA)
    assert result(0x0200, 7) == (3, 0xAA)
    assert result(0x0200, 8) == (NO_ENTRY, 0xBB)
    with pytest.raises(InvalidEntryError, match="constant entries"):
        pipeline.insert("MyIngress.const_t", [Ternary(0, 0), Range(0, 1)], SET, [1], 1)


def test_direct_counters_hits_defaults_and_exit(load: Load) -> None:
    pipeline = load("tables")
    table = "MyIngress.exact_t"
    handle = pipeline.insert(table, [Exact(1), Exact(2)], SET, [7])
    packet = struct.pack(">IHBBH", 1, 2, 3, 0, 0)
    [(_, out)] = pipeline.process(0, packet)
    assert struct.unpack(">IHBBH", out) == (1, 2, 4, 0x77, 7)  # hit: c + 1
    pipeline.process(0, struct.pack(">IHBBH", 9, 9, 3, 0, 0))
    assert pipeline.direct_counter(table, handle) == (1, 10)
    assert pipeline.direct_counter(table, None) == (1, 10)
    pipeline.set_default(table, "MyIngress.leave")
    [(_, out)] = pipeline.process(0, struct.pack(">IHBBH", 9, 9, 3, 0, 0))
    assert struct.unpack(">IHBBH", out) == (9, 9, 3, 0, 0xEEEE)  # exit: `which` stays
    pipeline.set_default(table, None)
    assert look_up(pipeline, "exact_t", 9, 9, 3) == NO_ENTRY
    pipeline.set_direct_counter(table, handle, 5, 6)
    assert pipeline.direct_counter(table, handle) == (5, 6)


@pytest.mark.parametrize(
    ("table", "key", "action", "params", "message"),
    [
        ("nothing", [Exact(1)], SET, [1], "no table 'nothing'"),
        ("MyIngress.exact_t", [Exact(1)], SET, [1], "2 key fields, not 1"),
        ("MyIngress.exact_t", [Exact(1 << 32), Exact(0)], SET, [1], "32 bits"),
        ("MyIngress.exact_t", [Exact(1), Ternary(0, 0)], SET, [1], "by exact, not Ternary"),
        ("MyIngress.exact_t", [Exact(1), Exact(0)], "x", [1], "no action 'x'"),
        ("MyIngress.exact_t", [Exact(1), Exact(0)], SET, [], "takes 1 parameters, not 0"),
        ("MyIngress.exact_t", [Exact(1), Exact(0)], SET, [1 << 16], "does not fit 16 bits"),
        ("MyIngress.lpm_t", [Lpm(1, 0), Exact(0)], SET, [1], "does not fit its mask"),
        ("MyIngress.lpm_t", [Lpm(0, 33), Exact(0)], SET, [1], "not in 0..32"),
        ("MyIngress.range_t", [Range(3, 2), Exact(0)], SET, [1], "3..2 is no range"),
    ],
)
def test_bad_entries_are_refused(
    load: Load, table: str, key: list[Any], action: str, params: list[int], message: str
) -> None:
    with pytest.raises(InvalidEntryError, match=message):
        load("tables").insert(table, key, action, params)
