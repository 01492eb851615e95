"""What differs between the store and the switch: the result of doing it is what was wanted."""

from __future__ import annotations

from ipaddress import IPv4Address
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.controller.switches.reconcile import (
    Difference,
    SwitchState,
    compare,
    job_number,
    kept_its_registers,
    slots_of,
)
from ina.p4 import names
from ina.protocol import serial
from ina.protocol.peer import Peer
from ina.tables.values import Entry, Group, Item
from ina.trees.endpoint import Endpoint
from ina.trees.slots import SlotRange
from tests.worlds.fakes.switches import job_at, plan_here

STAGES = ("Group", names.RECEIVERS, names.JOBS, names.MEMBERS)


def items_of(number: int, epoch: int = 5, first_udp_port: int = 4000) -> list[Item]:
    """All of a job of two workers."""
    job = job_at("j", number, 2, SlotRange(64 * number, 64, 64), 0.0, epoch=epoch)
    for rank in range(2):
        job.members[rank] = Endpoint(Peer(IPv4Address("10.0.0.1"), first_udp_port + rank), 1)
    return [item for stage in plan_here(job).stages for item in stage]


def key_of(item: Item) -> object:
    return item.number if isinstance(item, Group) else (item.table, frozenset(item.match))


def table_of(item: Item) -> str:
    return "Group" if isinstance(item, Group) else item.table


jobs = st.dictionaries(st.integers(1, 4), st.tuples(st.integers(1, 2), st.integers(1, 2)))


def build(made: dict[int, tuple[int, int]]) -> dict[int, list[Item]]:
    return {number: items_of(number, epoch, 4000 * port) for number, (epoch, port) in made.items()}


@given(jobs, jobs, st.sets(st.integers(1, 4)), st.randoms(use_true_random=False))
def test_doing_it_gives_what_was_wanted_and_keeps_what_is_foreign(
    wanted_jobs: dict[int, tuple[int, int]],
    actual_jobs: dict[int, tuple[int, int]],
    leaving: set[int],
    random: object,
) -> None:
    wanted: dict[int, list[Item]] = {**{n: [] for n in leaving}, **build(wanted_jobs)}
    there = [item for items in build(actual_jobs).values() for item in items]
    random.shuffle(there)  # type: ignore[attr-defined]
    there = there[: len(there) * 2 // 3]
    difference = compare(wanted, SwitchState(0, tuple(there)))

    switch = {key_of(item): item for item in there}
    for item in difference.extra:
        assert switch.pop(key_of(item)) == item
    for item in difference.wrong:
        assert key_of(item) in switch
        switch[key_of(item)] = item
    for number, items in difference.missing.items():
        order = [STAGES.index(table_of(item)) for item in items]
        assert all(a <= b or {a, b} == {0, 1} for a, b in pairwise(order))
        for item in items:
            assert job_number(item) == number
            assert switch.setdefault(key_of(item), item) is item

    foreign = [item for item in there if job_number(item) not in wanted]
    assert set(difference.foreign) == set(foreign)
    expected = [item for items in wanted.values() for item in items] + foreign
    assert set(switch.values()) == set(expected)


def test_members_go_first_and_a_switch_that_agrees_is_left_alone() -> None:
    there = items_of(1)
    assert compare({1: there}, SwitchState(5, tuple(reversed(there)))) == Difference()
    extra = compare({1: []}, SwitchState(5, tuple(there))).extra
    assert [table_of(item) for item in extra[:3]] == [names.MEMBERS, names.MEMBERS, names.JOBS]


def test_an_entry_with_other_parameters_is_modified() -> None:
    there = items_of(1)
    (admit,) = [item for item in there if isinstance(item, Entry) and item.table == names.JOBS]
    other = Entry(admit.table, admit.match, admit.action, (("slots", 2),))
    state = SwitchState(5, (*(item for item in there if item is not admit), other))
    assert compare({1: there}, state) == Difference(wrong=[admit])


def test_foreign_slots_are_those_of_foreign_jobs() -> None:
    foreign = compare({1: items_of(1)}, SwitchState(5, (*items_of(1), *items_of(3)))).foreign
    assert {job_number(item) for item in foreign} == {3}
    assert slots_of(foreign) == [range(192, 256)]


@pytest.mark.parametrize("wrap", [0, 2**32 - 4])
@pytest.mark.parametrize(
    ("mark", "kept"),
    [
        (7, True),  # the last one issued
        (6, True),  # its controller died between the store and the switch
        (5, True),  # of the newest job that runs
        (4, False),  # older than a running job: cleared, and used by another controller
        (8, False),  # newer than the store
        (None, False),  # the switch has restarted
    ],
)
def test_when_registers_are_those_of_the_running_jobs(
    mark: int | None, kept: bool, wrap: int
) -> None:
    epochs = [serial.add(epoch, wrap) for epoch in (2, 5)]
    moved = None if mark is None else serial.add(mark, wrap)
    assert kept_its_registers(moved, serial.add(7, wrap), epochs) is kept
