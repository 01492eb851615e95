"""Sets programs and entries: ``python -m ina.emulate.program_switches`` within ``net``.

A process of its own, because gRPC's threads stay in the namespace that the process began in. It may
run again while the network is up and a controller is at work: what it finds is changed to what it
was told, and it writes in the name of whoever is primary.

Plans come as JSON on stdin; each switch that is done is named on a line of stdout; an error is one
line on stderr and exit code 2.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from finsy import (
    P4CloneSessionEntry,
    P4MulticastGroupEntry,
    P4Schema,
    P4TableAction,
    P4TableEntry,
    P4TableMatch,
)
from finsy.p4schema import P4MatchType

from ina.controller.switches.southbound.p4runtime import P4RuntimeSession
from ina.emulate.errors import EmulationError
from ina.emulate.programming import ELECTION_ID, EntryPlan, Replica, SwitchPlan
from ina.errors import InaError
from ina.p4 import CompiledProgram
from ina.tables.errors import SwitchError

START_TIMEOUT_S = 60.0
_RETRY_S = 0.2
_AGAIN_S = (0.5, 1.0, 2.0)
_CONNECT_S = 5.0  # of one try


async def program(plan: SwitchPlan) -> None:
    """Waits until the switch serves P4Runtime, then gives it all of ``plan``.

    Raises :class:`SwitchError` (nobody answers; it refuses the program or an entry),
    :class:`EmulationError` (an entry does not fit the P4Info).
    """
    session = await _connect(plan)
    try:
        files = CompiledProgram(Path(plan.p4info), Path(plan.bmv2_json), "")
        if plan.is_controlled:
            await _until_set(session, files)
        else:
            await session.set_pipeline(files)
        schema = P4Schema(files.p4info, files.bmv2_json)
        entries = [(entry, _entry(plan, schema, entry)) for entry in plan.entries]
        made = [made for entry, made in entries if not entry.default_action]
        if plan.forwarding:
            await _forward(session, schema, plan.forwarding, made)
        else:
            await session.insert(made)
        await session.modify([made for entry, made in entries if entry.default_action])
        await session.insert(
            [
                P4MulticastGroupEntry(group.multicast_group_id, replicas=_replicas(group.replicas))
                for group in plan.groups
            ]
        )
        await session.insert(
            [
                P4CloneSessionEntry(clone.clone_session_id, replicas=_replicas(clone.replicas))
                for clone in plan.clones
            ]
        )
    finally:
        await session.close()


async def _until_set(session: P4RuntimeSession, files: CompiledProgram) -> None:
    """Returns when somebody else has set the program."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not await session.has_pipeline(files):
        if time.monotonic() >= deadline:
            raise EmulationError(f"its controller has set no program in {START_TIMEOUT_S:g} s")
        await asyncio.sleep(_RETRY_S)


async def _forward(
    session: P4RuntimeSession, schema: P4Schema, table: str, wanted: list[P4TableEntry]
) -> None:
    """Makes ``wanted`` all entries of a table of exact matches."""

    def by_key(entries: Iterable[P4TableEntry]) -> dict[bytes, tuple[bytes, P4TableEntry]]:
        said = ((it, it.encode(schema).table_entry) for it in entries)
        return {
            b"".join(field.SerializeToString(deterministic=True) for field in entry.match): (
                entry.action.SerializeToString(deterministic=True),
                it,
            )
            for it, entry in said
        }

    there = by_key(await session.read([P4TableEntry(table)]))
    new = by_key(wanted)
    await session.delete([it for key, (_, it) in there.items() if key not in new])
    await session.insert([it for key, (_, it) in new.items() if key not in there])
    changed = (key for key in new.keys() & there.keys() if new[key][0] != there[key][0])
    await session.modify([new[key][1] for key in changed])


async def _connect(plan: SwitchPlan) -> P4RuntimeSession:
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            session = await P4RuntimeSession.connect(
                plan.address,
                plan.device_id,
                election_id=ELECTION_ID,
                timeout_s=_CONNECT_S,
                standby=True,
            )
            session.writes_for_primary = True
            return session
        except SwitchError:
            if time.monotonic() >= deadline:
                raise
        await asyncio.sleep(_RETRY_S)


def _entry(plan: SwitchPlan, schema: P4Schema, entry: EntryPlan) -> P4TableEntry:
    try:
        fields = schema.tables[entry.table].match_fields
        match = {
            name: _value(fields[name].match_type, value) for name, value in entry.match.items()
        }
    except (KeyError, ValueError) as error:
        raise EmulationError(f"{plan.name}: table {entry.table}: {error}") from None
    return P4TableEntry(
        entry.table,
        match=None if entry.default_action else P4TableMatch(match),
        action=P4TableAction(entry.action_name, **entry.action_params),
        is_default_action=entry.default_action,
        priority=entry.priority,
    )


def _value(kind: P4MatchType | str, value: Any) -> str:
    """In finsy's notation, which depends on the kind of match where there are two values."""
    if not isinstance(value, list):
        return str(value)
    if len(value) == 1:
        return str(value[0])
    first, second = value
    match kind:
        case P4MatchType.LPM:
            return f"{first}/{second}"
        case P4MatchType.TERNARY:
            return f"{first}/&{second}"
        case P4MatchType.RANGE:
            return f"{first}...{second}"
    raise ValueError(f"{value}: two values, for a match that has one")


def _replicas(replicas: list[Replica]) -> list[tuple[int, int]]:
    return [(copy.egress_port, copy.instance) for copy in replicas]


async def _program_again(plan: SwitchPlan) -> None:
    """Who has become primary meanwhile is known at the second try."""
    for pause_s in _AGAIN_S if plan.is_controlled else ():
        try:
            await program(plan)
            return
        except SwitchError:
            await asyncio.sleep(pause_s)
    await program(plan)


async def _main() -> None:
    plans = msgspec.json.decode(sys.stdin.buffer.read(), type=list[SwitchPlan])
    for plan in plans:
        try:
            await _program_again(plan)
        except (SwitchError, OSError) as error:
            raise EmulationError(f"{plan.name}: {error}") from None
        print(plan.name, flush=True)


if __name__ == "__main__":
    try:
        asyncio.run(_main())
    except InaError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
