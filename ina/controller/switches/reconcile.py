"""What differs between what should be on the switch and what is. Pure.

Entries in the controller's own tables, and groups in its range, belong to a job by its number. A
number that no job of the store has makes an entry *foreign*: it is left alone, and its number and
slots are not handed out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ina import modes
from ina.controller.switches.plan import FIRST_GROUP
from ina.p4 import names
from ina.protocol import serial
from ina.tables.values import Entry, Group, Item, MatchValue

_STAGES = {**dict.fromkeys(names.ALL_JOB_TABLES, 0), names.JOBS: 1, names.MEMBERS: 2}
"""As in ``JobPlan.stages``: the order of installing. Groups are in stage 0."""


@dataclass(frozen=True)
class SwitchState:
    """What was read back of the controller's tables and groups."""

    mark: int | None
    """The last epoch issued, as the switch has it (``plan.epoch_mark``); None: no such entry."""
    items: tuple[Item, ...]
    """Of jobs: all else in these tables."""
    addresses: frozenset[int | str] = frozenset()
    """IPv4 addresses that it takes for its own; or networks."""
    passing: tuple[Entry, ...] = ()
    """Rows that let something through which is no job's (``Mode.passing``)."""


@dataclass
class Difference:
    """What to do. Lists are in the order in which it must be done."""

    missing: dict[int, list[Item]] = field(default_factory=dict)
    """To insert, by job number."""
    wrong: list[Item] = field(default_factory=list)
    """To modify: the key is there, with other parameters."""
    extra: list[Item] = field(default_factory=list)
    """To delete: of a job that we know, which does not want it."""
    foreign: list[Item] = field(default_factory=list)
    """Of nobody we know."""


def compare(wanted: Mapping[int, Iterable[Item]], actual: SwitchState) -> Difference:
    """``wanted``: by number, what each job in the store shall have; of a job that is being removed,
    nothing.
    """
    difference = Difference()
    there = {_key(item): item for item in actual.items}
    keys = set()
    for number, items in wanted.items():
        for item in sorted(items, key=_stage):
            keys.add(_key(item))
            found = there.get(_key(item))
            if found is None:
                difference.missing.setdefault(number, []).append(item)
            elif _content(found) != _content(item):
                difference.wrong.append(item)
    for item in sorted(actual.items, key=_stage, reverse=True):
        if job_number(item) not in wanted:
            difference.foreign.append(item)
        elif _key(item) not in keys:
            difference.extra.append(item)
    return difference


def job_number(item: Item) -> int:
    """Whose it is."""
    if isinstance(item, Group):
        return item.number - FIRST_GROUP
    # Some rows are looked up by the epoch alone.
    return int({**dict(item.params), **dict(item.match)}["job"])


def slots_of(items: Iterable[Item]) -> list[range]:
    """The physical slots that these entries give to somebody alone."""
    found = []
    for item in items:
        if isinstance(item, Entry) and item.table == names.JOBS and not modes.shares_slots(item):
            first = item.param("first_slot")
            found.append(range(first, first + item.param("slots")))
    return found


def epochs_of(items: Iterable[Item]) -> list[int]:
    """The epochs that these entries let into registers."""
    return [
        item.param("epoch")
        for item in items
        if isinstance(item, Entry) and item.table == names.JOBS
    ]


def kept_its_registers(mark: int | None, last_epoch: int, running: Iterable[int]) -> bool:
    """Whether the switch has been up, with these registers, since the running jobs started.

    A job's epoch is in the mark before its entries are written, and every epoch is in the store
    before it is in the mark. So a mark that is gone, or older than a running job, or newer than the
    store, was not left by the life in which these jobs started.
    """
    if mark is None or serial.is_newer(mark, last_epoch):
        return False
    return not any(serial.is_newer(epoch, mark) for epoch in running)


def _key(item: Item) -> tuple[str, frozenset[tuple[str, MatchValue]]]:
    if isinstance(item, Group):
        return "group", frozenset([("number", item.number)])
    return item.table, frozenset(item.match)


def _content(item: Item) -> tuple[str, frozenset[tuple[str | int, int]]]:
    if isinstance(item, Group):
        return "replicas", frozenset(item.replicas)
    return item.action, frozenset(item.params)


def _stage(item: Item) -> int:
    return 0 if isinstance(item, Group) else _STAGES[item.table]
