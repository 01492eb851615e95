"""Sets programs and entries: ``python -m ina.emulate.program_switches`` within ``net``.

A process of its own, because gRPC's threads stay in the namespace that the process began in. It may
run again while the network is up and a controller is at work: what it finds is changed to what it
was told, and it writes in the name of whoever is primary.

Plans come as JSON on stdin, or in the file that is named; each switch that is done is named on a
line of stdout; an error is one line on stderr and exit code 2.
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from pathlib import Path

import msgspec

from ina.emulate.errors import EmulationError
from ina.emulate.programming import ELECTION_ID, SwitchPlan
from ina.errors import InaError
from ina.p4 import CompiledProgram
from ina.tables.errors import SwitchError
from ina.tables.p4runtime import P4RuntimeSession
from ina.tables.values import Entry

START_TIMEOUT_S = 60.0
_RETRY_S = 0.2
_AGAIN_S = (0.5, 1.0, 2.0)
_CONNECT_S = 5.0  # of one try


async def program(plan: SwitchPlan) -> None:
    """Waits until the switch serves P4Runtime, then gives it all of ``plan``.

    Raises :class:`SwitchError`: nobody answers; it refuses the program or an item.
    """
    session = await _connect(plan)
    try:
        if plan.is_controlled:
            await _until_set(session)
        else:
            await session.set_pipeline()
        if plan.forwarding:
            await _forward(session, plan)
        else:
            for _, run in itertools.groupby(plan.items, type):
                await session.insert(list(run))
    finally:
        await session.close()


async def _until_set(session: P4RuntimeSession) -> None:
    """Returns when somebody else has set the program."""
    deadline = time.monotonic() + START_TIMEOUT_S
    while not await session.has_pipeline():
        if time.monotonic() >= deadline:
            raise EmulationError(f"its controller has set no program in {START_TIMEOUT_S:g} s")
        await asyncio.sleep(_RETRY_S)


async def _forward(session: P4RuntimeSession, plan: SwitchPlan) -> None:
    """Makes the plan's entries all of their table, whose matches are exact."""
    there = {entry.match: entry for entry in await session.read_entries(plan.forwarding)}
    wanted = {item.match: item for item in plan.items if isinstance(item, Entry)}
    await session.delete([entry for match, entry in there.items() if match not in wanted])
    await session.insert([entry for match, entry in wanted.items() if match not in there])
    changed = (match for match in wanted.keys() & there.keys() if wanted[match] != there[match])
    await session.modify([wanted[match] for match in changed])


async def _connect(plan: SwitchPlan) -> P4RuntimeSession:
    deadline = time.monotonic() + START_TIMEOUT_S
    program = CompiledProgram(Path(plan.p4info), Path(plan.bmv2_json), "")
    while True:
        try:
            session = await P4RuntimeSession.connect(
                plan.address,
                plan.device_id,
                program,
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
    said = Path(sys.argv[1]).read_bytes() if sys.argv[1:] else sys.stdin.buffer.read()
    plans = msgspec.json.decode(said, type=list[SwitchPlan])
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
