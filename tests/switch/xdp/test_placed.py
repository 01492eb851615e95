"""Tables in an array that programs read at any time: whatever word was written last, an entry is
found as it was or as it is, and one that was found stays what it is as long as programs run."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.switch.emit_ebpf.placed import MOST_SCANNED, PROBES, SPARE, PlacedTable
from ina.switch.errors import TableFullError
from ina.switch.ir import load_program
from ina.switch.match import TableKey
from ina.switch.passes.plan import make_plan
from ina.switch.xdp import placed as module
from ina.switch.xdp.placed import PlacedStore, placed_store, wait_for_programs
from ina.switch.xdp.tables import MapTable
from tests.conformance.programs import FOLDER
from tests.selection import LONG

PLANS = make_plan(
    load_program((FOLDER / "claimed.json").read_text()), main_path=False
).tables_by_name
AT = 5
"""Where the tables begin."""
KEYS = range(12)


def small(name: str) -> PlacedTable:
    """Of few places, so that they are used again."""
    plan = PLANS[name]
    return PlacedTable(replace(plan, table=replace(plan.table, max_size=len(KEYS))), AT)


TABLES = {"found": small("MyIngress.owners"), "scanned": small("MyIngress.kinds")}
NEAR = [
    number
    for number in range(500)
    if (module._hash(struct.pack("<2Q", number, 1)) + 2) % TABLES["found"].index_words < 4
]
"""Keys whose entries are beside each other, around the end of the index."""
Ops = list[tuple[str, int, int]]
OPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "insert", "replace", "delete"]),
        st.sampled_from(KEYS),
        st.integers(1, 1 << 40),
    ),
    min_size=40,
    max_size=80,
)


class Words(list[int]):
    """An array, and who is told of each word that is written."""

    on_write: Callable[[], None] = staticmethod(lambda: None)

    def __setitem__(self, at: Any, value: Any) -> None:
        super().__setitem__(at, value)
        self.on_write()


def words_of(table: PlacedTable) -> Words:
    return Words([0] * (AT + table.words))


def key_of(table: PlacedTable, number: int) -> tuple[bytes, int]:
    """Packed, and its priority. Of the scanned, an entry has all keys of a few first bits."""
    if not table.scans:
        return struct.pack("<2Q", NEAR[number], 1), 0
    mask, priority = (0xF, 0xE, 0xC)[number % 3], number % 4
    packed = struct.pack("<4Qi", number & mask, 0, mask, 1 << 63, priority)
    return packed, priority


def read(table: PlacedTable, words: list[int], number: int) -> int | None:
    """As runtime/ina_placed.h: where the entry is that a packet finds."""
    key = struct.unpack("<2Q", struct.pack("<2Q", number, number * 3))
    if not table.scans:
        key = struct.unpack("<2Q", key_of(table, number)[0])
        home = module._hash(struct.pack("<2Q", *key))
        for probe in range(PROBES):
            place = words[AT + (home + probe & table.index_words - 1)]
            if place == 0:
                return None
            at = AT + table.index_words + place * table.place_words
            if place < table.places and tuple(words[at : at + 2]) == key:
                return at + 2
        return None
    best, found = 0, None
    for place in range(min(table.places, words[AT])):
        at = AT + 1 + place * table.place_words
        low, high = words[at + 3], words[at + 5]
        matches = key[0] & words[at + 4] == words[at + 2] and low <= key[1] <= high
        if words[at] > best and matches:
            best, found = words[at], AT + 1 + words[at + 1] * table.place_words + 6
    return found


def entry_of(table: PlacedTable, value: int) -> bytes:
    return struct.pack(f"<{table.entry_words}Q", *[value] * table.entry_words)


@contextmanager
def waits(then: Callable[[], None]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "wait_for_programs", then)
        yield


def model_of(table: PlacedTable, held: dict[int, int]) -> list[int | None]:
    """What each packet finds; ``held``: by number, in the order that they came."""
    if not table.scans:
        return [held.get(number) for number in KEYS]
    found: list[int | None] = []
    for asked in KEYS:
        that = [
            (key_of(table, number)[1], -place, value)
            for place, (number, value) in enumerate(held.items())
            if (asked ^ number) & (0xF, 0xE, 0xC)[number % 3] == 0
        ]
        found.append(max(that)[2] if that else None)
    return found


def change(
    table: PlacedTable, store: PlacedStore, held: dict[int, int], ops: Ops
) -> Iterator[dict[int, int]]:
    """Gives what is to be held after each that can be, and then makes it so."""
    for what, number, value in ops:
        key, priority = key_of(table, number)
        if (what == "insert") == (number in held):
            continue
        after = {**held, number: value}
        if what == "delete":
            del after[number]
        yield after
        if what == "insert":
            assert store.insert(key, entry_of(table, value), priority)
        elif what == "replace":
            store.replace(key, entry_of(table, value))
        else:
            store.delete(key)
        held.clear()
        held.update(after)


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=1000 if LONG else 25)
@given(ops=OPS)
def test_who_reads_meanwhile_finds_what_was_or_what_is(name: str, ops: Ops) -> None:
    table, held = TABLES[name], dict[int, int]()
    words = words_of(table)
    store = placed_store(table, cast(memoryview, words))

    def seen() -> list[int | None]:
        places = [read(table, words, number) for number in KEYS]
        for at in places:
            assert at is None or len(set(words[at : at + table.entry_words])) == 1
        return [None if at is None else words[at] for at in places]

    with waits(lambda: None):
        for after in change(table, store, held, ops):
            both = list(zip(model_of(table, held), model_of(table, after), strict=True))

            def look(both: list[tuple[int | None, int | None]] = both) -> None:
                assert all(one in may for one, may in zip(seen(), both, strict=True))

            words.on_write = look
        words.on_write = lambda: None
        assert seen() == model_of(table, held)


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=1000 if LONG else 25)
@given(ops=OPS)
def test_what_was_found_is_not_written_while_programs_run(name: str, ops: Ops) -> None:
    """A packet that has found an entry goes on reading it until :func:`wait_for_programs`."""
    table, held = TABLES[name], dict[int, int]()
    words = words_of(table)
    store = placed_store(table, cast(memoryview, words))
    read_still: dict[int, list[int]] = {}

    def look() -> None:
        for at, was in read_still.items():
            assert words[at : at + table.entry_words] == was

    words.on_write = look
    with waits(read_still.clear):
        for _ in change(table, store, held, ops * 4):
            for number in KEYS:
                at = read(table, words, number)
                if at is not None:
                    read_still.setdefault(at, words[at : at + table.entry_words])


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=1000 if LONG else 25)
@given(before=OPS, after=OPS)
def test_another_process_goes_on_with_what_is_there(name: str, before: Ops, after: Ops) -> None:
    table, held = TABLES[name], dict[int, int]()
    words = words_of(table)
    with waits(lambda: None):
        for ops in (before, after):
            store = placed_store(table, cast(memoryview, words))
            found = store.find()
            assert found == {key_of(table, it)[0]: entry_of(table, held[it]) for it in held}
            for _ in change(table, store, held, ops):
                pass
        places = [read(table, words, number) for number in KEYS]
        seen = [None if at is None else words[at] for at in places]
        assert seen == model_of(table, held)


def test_of_an_entry_that_was_being_replaced_one_is_left() -> None:
    table = TABLES["scanned"]
    words = words_of(table)
    key, priority = key_of(table, 0)
    former = placed_store(table, cast(memoryview, words))
    former.insert(key, entry_of(table, 1), priority)

    def ends() -> None:
        if len({words[at] for at in ranks}) == 1:
            raise KeyboardInterrupt

    ranks = [AT + 1 + place * table.place_words for place in (0, 1)]
    words.on_write = ends
    with pytest.raises(KeyboardInterrupt):
        former.replace(key, entry_of(table, 2))
    words.on_write = lambda: None
    store = placed_store(table, cast(memoryview, words))
    assert store.find() == {key: entry_of(table, 1)}
    store.delete(key)
    assert read(table, words, 0) is None


def test_searches_go_on_past_what_is_gone_and_end_where_nothing_was() -> None:
    table = TABLES["found"]
    words = words_of(table)
    store = placed_store(table, cast(memoryview, words))
    keys = [key_of(table, number)[0] for number in KEYS]
    with waits(lambda: None):
        for _ in range(3):
            for key in keys:
                assert store.insert(key, entry_of(table, 1), 0)
            for key in keys:
                store.delete(key)
    assert not any(words[AT : AT + table.index_words])


def test_a_table_has_room_for_what_it_says_and_for_some_changes() -> None:
    """Of tables that are looked through, for no more than :data:`MOST_SCANNED`."""
    plan = PLANS["MyIngress.kinds"]
    table = PlacedTable(plan, AT)
    asked: list[None] = []
    assert plan.table.max_size > MOST_SCANNED
    whole = MapTable(plan, placed_store(table, cast(memoryview, words_of(table))))
    action = plan.table.actions[0]
    key = TableKey((0, 0), (0, 255), None)
    with waits(lambda: asked.append(None)):
        handles = [whole.insert(key, action, [1], number)[0] for number in range(MOST_SCANNED)]
        with pytest.raises(TableFullError, match=r"kinds is full \(256 entries, on device xdp\)"):
            whole.insert(key, action, [1], MOST_SCANNED)
        assert not asked
        for _ in range(SPARE + 1):
            whole.modify(handles[0], action, [2])
        assert len(asked) == 1
        whole.delete(handles[7])
        whole.insert(key, action, [1], MOST_SCANNED)


def test_programs_can_be_waited_for() -> None:
    wait_for_programs()
