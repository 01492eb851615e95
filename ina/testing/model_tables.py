"""The tables and counters of the model device: plain dictionaries."""

from __future__ import annotations

import ipaddress
from collections import Counter as Tally
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from operator import or_

from ina.p4 import names
from ina.protocol.shared_model import Claims
from ina.protocol.spec import Kind
from ina.protocol.strips import KEEPS, Strips
from ina.protocol.switch_model import Attachment, ModelJob, Parent
from ina.tables.values import (
    AnyItem,
    Count,
    Counter,
    CounterRef,
    DefaultAction,
    Entry,
    EntryCounter,
    Group,
    MatchValue,
)
from ina.testing.errors import DeviceError

NOBODY = Attachment(-1, -1, -1)
"""Stands for a worker without a member entry: no packet comes from there."""

_NO_WAY = -1
"""Of a child that no path leads to."""

Key = tuple[MatchValue, ...]


class Tables:
    """What was written, and what was counted."""

    def __init__(self, sender: tuple[str, ...]) -> None:
        """``sender``: the keys of the table of members that are its sender's."""
        self._sender = sender
        self._entries: dict[str, dict[Key, Entry]] = {}
        self._defaults: dict[str, DefaultAction] = {}
        self._groups: dict[int, tuple[tuple[int, int], ...]] = {}
        self._packets: Tally[CounterRef] = Tally()
        self._bytes: Tally[CounterRef] = Tally()

    def insert(self, item: AnyItem) -> None:
        """Writes one; raises DeviceError where an entry or group is there already."""
        match item:
            case Entry(table=table):
                rows = self._entries.setdefault(table, {})
                key = _key(item)
                if key in rows:
                    raise DeviceError(f"table {table} already has an entry for {key}")
                rows[key] = item
            case DefaultAction(table=table):
                self._defaults[table] = item
            case Group(number=number):
                if number in self._groups:
                    raise DeviceError(f"multicast group {number} is there already")
                self._groups[number] = item.replicas

    def delete(self, item: AnyItem) -> None:
        """Takes one off; its counter goes with it."""
        match item:
            case Entry(table=table):
                gone = self._entries[table].pop(_key(item))
                ref = EntryCounter(table, gone.match)
                del self._packets[ref], self._bytes[ref]
            case DefaultAction(table=table):
                self._defaults.pop(table, None)
            case Group(number=number):
                del self._groups[number]

    def modify(self, group: Group) -> None:
        """Gives a group other copies; raises DeviceError where there is none."""
        if group.number not in self._groups:
            raise DeviceError(f"there is no multicast group {group.number}")
        self._groups[group.number] = group.replicas

    def hit(self, table: str, key: Key, frame_bytes: int) -> Entry | None:
        """The entry that matches exactly; it counts the packet."""
        return self._counted(self._entries.get(table, {}).get(key), frame_bytes)

    def longest_prefix(self, table: str, address: int, frame_bytes: int) -> Entry | None:
        """The entry with the longest matching IPv4 prefix; it counts the packet."""
        found: tuple[int, Entry] | None = None
        for (prefix,), entry in self._entries.get(table, {}).items():
            network = ipaddress.IPv4Network(prefix)
            if ipaddress.IPv4Address(address) in network:
                found = max(found or (-1, entry), (network.prefixlen, entry), key=lambda x: x[0])
        return self._counted(found and found[1], frame_bytes)

    def default(self, table: str) -> DefaultAction | None:
        """What was set as the table's default action; None: as the program says."""
        return self._defaults.get(table)

    def group(self, number: int) -> tuple[tuple[int, int], ...]:
        """Replicas of a group; an unknown group has none."""
        return self._groups.get(number, ())

    def count(self, name: str, index: int, frame_bytes: int) -> None:
        """Counts a packet in an indirect counter."""
        self._add(Counter(name, index), frame_bytes)

    def read(self, ref: CounterRef) -> Count:
        """Packets and bytes."""
        return Count(self._packets[ref], self._bytes[ref])

    def jobs(self) -> list[tuple[Entry, ModelJob]]:
        """The jobs that the job table admits, each with the workers of the member table."""
        return [(row, self._job(row)) for row in self._entries.get(names.JOBS, {}).values()]

    def same(self, at: Attachment, packet: bytes) -> Attachment:
        """Where the model has the sender of a packet of ina's: at the first of its connections."""
        said = {
            "job": int.from_bytes(packet[2:4], "big"),
            "epoch": int.from_bytes(packet[4:6], "big"),
            "worker": packet[6],
            "kind": int(Kind.CONTRIBUTION),
        }
        its = []
        for member in self._entries.get(names.MEMBERS, {}).values():
            key: Mapping[str, int] = {name: int(value) for name, value in member.match}
            if all(key[name] == value for name, value in said.items()):
                its.append(self._attachment(key))
        return its[0] if at in its else at

    def _attachment(self, key: Mapping[str, int]) -> Attachment:
        """Of a member's key."""
        sender = sender_number(tuple(key[name] for name in self._sender))
        return Attachment(key["ingress_port"], key["src_addr"], sender)

    def owners(self) -> set[int]:
        """Epochs of jobs whose sums have somewhere to go when they are put out of a slot."""
        rows = self._entries.get(names.OWNERS, {}).values()
        return {int(dict(row.match)["epoch"]) for row in rows}

    def _job(self, row: Entry) -> ModelJob:
        match, params = dict(row.match), dict(row.params)
        number, epoch = int(match["job"]), int(match["epoch"])
        children = params["full_bitmap"].bit_length()
        workers, bits, sets = [NOBODY] * children, [0] * children, set()
        parent = self._parent(row, number)
        for member in self._entries.get(names.MEMBERS, {}).values():
            key: Mapping[str, int] = {name: int(value) for name, value in member.match}
            if (key["job"], key["epoch"]) != (number, epoch):
                continue
            at = self._attachment(key)
            if key["kind"] == Kind.CONTRIBUTION:
                child = key["worker"]
                if workers[child] is NOBODY:
                    workers[child] = at
                bits[child] = member.params[0][1]
                if member.action == names.ADMIT_SET:
                    sets.add(child)
            elif parent is not None:
                parent = replace(parent, at=at, worker=key["worker"])
        known = reduce(or_, bits)
        for child in range(children):  # who has no entry can be waited for all the same
            bits[child] = bits[child] or 1 << child & params["full_bitmap"] & ~known
        return ModelJob(
            number,
            params["epoch"],
            params["first_slot"],
            params["slots"],
            tuple(workers),
            parent=parent,
            bits=tuple(bits),
            sets=frozenset(sets),
            claims=_claims(row),
            is_stream=row.action in (names.ADMIT_STREAM_JOB, names.ADMIT_INNER_STREAM_JOB),
        )

    def _parent(self, row: Entry, number: int) -> Parent | None:
        """Of an inner node, as far as there are entries that say it."""
        if row.action in (names.ADMIT_JOB, names.ADMIT_STREAM_JOB):
            return None
        params = dict(row.params)
        ways = [_NO_WAY] * params["full_bitmap"].bit_length()
        for child in self._entries.get(names.CHILDREN, {}).values():
            match = dict(child.match)
            if match["job"] == number:
                ways[dict(child.params)["worker"]] = int(match["way"])
        own = params["own_worker"], params["own_level"]
        return Parent(NOBODY, *own, params["path_mask"], tuple(ways))

    def _counted(self, entry: Entry | None, frame_bytes: int) -> Entry | None:
        if entry is not None:
            self._add(EntryCounter(entry.table, entry.match), frame_bytes)
        return entry

    def _add(self, ref: CounterRef, frame_bytes: int) -> None:
        self._packets[ref] += 1
        self._bytes[ref] += frame_bytes


def sender_number(parts: tuple[int, ...]) -> int:
    """What names a sender behind an address, as one number: of a socket, its port."""
    return reduce(lambda number, part: number << 32 | part, parts)


def strips_of(params: Mapping[str, int]) -> Strips:
    """What a row of receivers says; nothing, where its program has no shapes."""
    if "way_mask" not in params:
        return KEEPS
    way = params["way"], params["way_mask"]
    return Strips(*way, on=params["strips_on"], off=params["strips_off"])


def _claims(row: Entry) -> Claims | None:
    if row.action != names.ADMIT_SHARED_JOB:
        return None
    params = dict(row.params)
    return Claims(params["lane_mask"], params["claimable"], params["age_us"], params["lead_us"])


def _key(entry: Entry) -> Key:
    return tuple(value for _, value in entry.match)
