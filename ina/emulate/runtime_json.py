"""The p4lang tutorials' ``sX-runtime.json``: a program, table entries, groups, clone sessions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from finsy.p4values import encode_exact

from ina.emulate.errors import TopologyError
from ina.fabric.topology_json import convert, decoded
from ina.p4.info import Action, Key, ProgramInfo, Table, read_p4info
from ina.p4.origin import warn_if_changed
from ina.tables.values import AnyItem, CloneSession, DefaultAction, Entry, Group, MatchValue


@dataclass(frozen=True)
class Runtime:
    """What such a file says."""

    p4info: Path
    bmv2_json: Path
    items: tuple[AnyItem, ...]
    """In the order of writing."""


class _Entry(msgspec.Struct):
    table: str
    action_name: str
    match: dict[str, Any] = {}
    """A value; or two: address and prefix length, value and mask, or low and high."""
    action_params: dict[str, Any] = {}
    priority: int = 0
    default_action: bool = False


class _Copy(msgspec.Struct):
    egress_port: int
    instance: int = 0


class _Group(msgspec.Struct):
    multicast_group_id: int
    replicas: list[_Copy]


class _Clones(msgspec.Struct):
    clone_session_id: int
    replicas: list[_Copy]


class _File(msgspec.Struct):
    """Keys that it may have beside these do not matter."""

    p4info: str
    bmv2_json: str
    table_entries: list[_Entry] = []
    multicast_group_entries: list[_Group] = []
    clone_session_entries: list[_Clones] = []


def read_runtime_json(path: Path) -> Runtime:
    """Reads it, and the P4Info that it names. Raises :class:`TopologyError`."""
    said = convert(path, "", decoded(path), _File)
    p4info = _find(path, "p4info", said.p4info)
    bmv2_json = _find(path, "bmv2_json", said.bmv2_json)
    warn_if_changed(bmv2_json)
    return Runtime(p4info, bmv2_json, tuple(_items(path, p4info, said)))


def _items(path: Path, p4info: Path, said: _File) -> Iterator[AnyItem]:
    info = read_p4info(p4info) if said.table_entries else None
    for number, entry in enumerate(said.table_entries):
        assert info is not None
        try:
            yield _item(info, entry)
        except ValueError as error:
            where = f"{path}: table_entries[{number}]"
            raise TopologyError(f"{where}: table {entry.table}: {error}") from None
    for group in said.multicast_group_entries:
        yield Group(group.multicast_group_id, _copies(group.replicas))
    for session in said.clone_session_entries:
        yield CloneSession(session.clone_session_id, _copies(session.replicas))


def _item(info: ProgramInfo, said: _Entry) -> Entry | DefaultAction:
    table: Table = _named("table", said.table, info.tables)
    action: Action = _named("action", said.action_name, info.actions)
    params = tuple(
        (name, _number(value, _named("parameter", name, action.parameters).bits))
        for name, value in said.action_params.items()
    )
    if said.default_action:
        return DefaultAction(said.table, said.action_name, params)
    match = tuple(
        (name, _matched(_named("key", name, table.keys), value))
        for name, value in said.match.items()
    )
    return Entry(said.table, match, said.action_name, params, said.priority)


def _named(what: str, name: str, known: tuple[Any, ...]) -> Any:
    """By its full name, or by the last parts of it."""
    for it in known:
        if it.name == name or it.name.endswith(f".{name}"):
            return it
    raise ValueError(f"the program has no {what} {name} there")


def _matched(key: Key, value: Any) -> MatchValue:
    """In finsy's notation, which depends on the kind of match where there are two values."""
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if not isinstance(value, list):
        return _number(value, key.bits) if key.match == "exact" else str(value)
    between = {"lpm": "/", "ternary": "/&", "range": "..."}.get(key.match)
    if between is None or len(value) != 2:
        raise ValueError(f"key {key.name}: {value}: {len(value)} values, for a match {key.match}")
    return f"{value[0]}{between}{value[1]}"


def _number(value: Any, bits: int) -> int:
    """Of a number, or of an address as text."""
    return int.from_bytes(encode_exact(value, bits), "big")


def _copies(copies: list[_Copy]) -> tuple[tuple[int, int], ...]:
    return tuple((copy.egress_port, copy.instance) for copy in copies)


def _find(source: Path, key: str, name: str) -> Path:
    """The tutorials name files from the exercise's folder, above the one of ``source``.

    What their Makefile calls ``basic.p4.p4info.txtpb`` is ``basic.p4info.txtpb`` to ``ina p4
    compile``: either will do.
    """
    ours = re.sub(r"\.p4\.p4info\.txt(pb)?$", ".p4info.txtpb", name)
    for folder in (Path(), source.parent, source.parent.parent):
        for wanted in (name, ours):
            if (folder / wanted).is_file():
                return (folder / wanted).resolve()
    raise TopologyError(
        f"{source}: {key}: no {name} here, beside this file or above it; compile the program first:"
        f" ina p4 compile PROGRAM.p4 --out {Path(name).parent}, or make in the exercise"
    )
