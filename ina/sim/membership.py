"""Keeps a rank's membership: heartbeats, and the stream of what happens to its job.

As :class:`ina.host.membership.Membership`, whose times it has, with tasks for threads. What it
leaves out is what cannot be here: a controller inside of a rank's process, refused packets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Protocol

from ina.errors import InaError
from ina.extension.sim import Worker
from ina.host.calls import Credentials, end_of
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    JobEndedError,
    MembershipEndedError,
)
from ina.host.failure import who
from ina.host.progress import ProgressReporter
from ina.host.remapping import Remapping
from ina.host.ticket import Ticket
from ina.rpc import controller_pb2 as pb2
from ina.sim.client import SimClient
from ina.sim.process import Process
from ina.sim.remapper import SimRemapper
from ina.sim.rpc import CallError, Stream

REASON_GRACE_S = 1.0
FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 2.0
LOOK_S = 0.1
"""How often a rank whose fellows leave looks whether it has begun more."""


class Owner(Protocol):
    """Whose membership it is: a :class:`~ina.sim.rank.Rank`."""

    process: Process
    worker: Worker | None
    """None: it has failed, or is leaving."""

    @property
    def now_ns(self) -> int:
        """Virtual time."""
        ...

    def fail(self, error: InaError) -> None:
        """The job cannot go on."""
        ...


class SimMembership:
    """One rank's."""

    def __init__(
        self, rank: Owner, worker: Worker, client: SimClient, ticket: Ticket,
        joined: pb2.JoinReply, remapping: Remapping, *, patience_s: float = 0.0,
    ) -> None:  # fmt: skip
        """``patience_s``: how long it waits at its end, at most, until the others have left."""
        self.credentials = Credentials(
            ticket.job_name, ticket.rank, joined.epoch, joined.member_key
        )
        self.lacks_results = False
        """Results by IP multicast do not come."""
        self._rank = rank
        self._who = who(ticket)
        self._client = client
        self._remapper = SimRemapper(remapping, client, self.credentials)
        self._lease_s, self._heartbeat_s = joined.lease_s, joined.heartbeat_s
        self._windows = remapping.windows
        self._worker = worker
        self._reporter = ProgressReporter(worker, lambda: 0.0)
        self._last: pb2.Progress | None = None
        self._hints: dict[str, str] = {}
        self._away = False
        self._patience_s = patience_s
        self._here = set(range(ticket.world_size)) - {ticket.rank}
        self._alone = asyncio.Event()
        self._left(())
        self._others_leave = False
        self._stopping = False
        self._hurry = asyncio.Event()
        self._look = asyncio.Event()
        self._stream: Stream | None = None

    @property
    def said(self) -> str:
        """What the controller has said about why nothing goes on."""
        return "; ".join(self._hints.values())

    def start(self, process: Process) -> None:
        """Begins its tasks."""
        process.spawn(self._beat())
        process.spawn(self._watch())
        process.spawn(self._follow())

    def speak(self) -> None:
        """Sends a heartbeat at once."""
        self._hurry.set()

    async def wait_for_others(self) -> None:
        """Where their results are made in this process: until they are done, and have left."""
        if self._patience_s:
            self.speak()
            await _wait(self._alone, self._patience_s)

    def _left(self, ranks: Iterable[int]) -> None:
        self._here.difference_update(ranks)
        if not self._here:
            self._alone.set()

    def stop(self) -> pb2.Progress | None:
        """No more heartbeats; the stream stays. Returns the rank's last words."""
        self._stopping = True
        self._hurry.set()
        self._look.set()
        self._remapper.stop()
        self.remember()
        return self._last

    def remember(self) -> None:
        """How far the rank has come, before its worker goes."""
        if self._rank.worker is not None:
            self._last = self._reporter.report(whole=True)
            self._last.windows.CopyFrom(self._windows.state(self._worker.stats()))

    async def _beat(self) -> None:
        while not self._stopping:
            await self._rank.process.running()
            self.remember()
            progress = pb2.Progress()
            if self._last is not None:
                progress.CopyFrom(self._last)
            progress.shared_results_missing = self.lacks_results
            timeout_s = max(min(self._lease_s / 2, 5.0), self._heartbeat_s)
            try:
                reply = await self._client.heartbeat(self.credentials, progress, timeout_s)
            except MembershipEndedError as error:
                self._look.set()
                await asyncio.sleep(REASON_GRACE_S)
                self._left(list(self._here))
                self._rank.fail(JobEndedError(f"{self._who}: {error}"))
                return
            except (ControllerUnavailableError, ControllerTimeoutError):
                self._away = True
                self._client.try_next()
                if self._client.has_others and self._stream is not None:
                    self._stream.cancel()
            except ControllerError:
                pass
            else:
                self._away = False
                self._remapper.heard(reply.remaps_to)
                if reply.ranks_here == 1:  # one may have left before the stream was open
                    self._left(list(self._here))
                if reply.lease_s > 0 and reply.heartbeat_s > 0:
                    self._lease_s, self._heartbeat_s = reply.lease_s, reply.heartbeat_s
            soon_s = min(self._heartbeat_s, MAX_PAUSE_S)
            await self._pause(soon_s if self._away else self._heartbeat_s)

    async def _pause(self, wait_s: float) -> None:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + wait_s
        while (left_s := end_s - loop.time()) > 0:
            look_s = min(left_s, LOOK_S) if self._others_leave else left_s
            if await _wait(self._hurry, look_s):
                break
            is_open = self._rank.worker is not None
            if self._others_leave and is_open and self._reporter.has_begun_more:
                break
        self._hurry.clear()

    async def _follow(self) -> None:
        error = await self._remapper.run(self._rank.process)
        if error is not None and not self._stopping:
            self._rank.fail(error)

    async def _watch(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._stopping:
            await self._rank.process.running()
            stream = self._stream = self._client.watch(self.credentials)
            begun = asyncio.ensure_future(stream.begun.wait())
            try:
                await asyncio.wait([begun, stream.ended], return_when=asyncio.FIRST_COMPLETED)
                if begun.done():
                    self._hints.pop("stall", None)
                async for event in stream:
                    await self._rank.process.running()
                    pause_s = FIRST_PAUSE_S
                    if self._on_event(event):
                        return
            except CallError as error:
                if error.is_unknown:
                    self._hurry.set()  # the heartbeat's answer decides
                    return
            finally:
                begun.cancel()
            self._hurry.set()
            await _wait(self._look, pause_s)
            self._look.clear()
            pause_s = min(2 * pause_s, max(self._heartbeat_s, FIRST_PAUSE_S), MAX_PAUSE_S)

    def _on_event(self, event: pb2.JobEvent) -> bool:
        """Returns whether it was the last."""
        if event.epoch not in (0, self.credentials.epoch):
            return False
        end = end_of(event, self._who)
        if end is not None:
            self._left(list(self._here))
            if not self._stopping:
                self._rank.fail(end)
            return True
        if event.kind == pb2.JOB_STALLED:
            self._hints["stall"] = event.reason
        elif event.kind == pb2.RANKS_DIFFER:
            self._hurry.set()  # each heartbeat says what was submitted
        elif event.kind == pb2.JOB_RESUMED:
            self._hints.pop("stall", None)
        elif event.kind == pb2.MEMBER_LEFT:
            self._others_leave = True
            self._left(event.ranks)
            self._hurry.set()
            for rank in event.ranks:
                self._hints[f"rank {rank}"] = f"rank {rank} has left the job"
        elif event.kind == pb2.JOB_WINDOWS:
            if self._rank.worker is not None:
                self._windows.take(event.windows, self._rank.worker)
        elif event.kind in (pb2.JOB_REMAPS, pb2.JOB_REMAPPED, pb2.JOB_REMAP_OFF):
            self._remapper.ask(is_over=event.kind == pb2.JOB_REMAPPED)
        elif event.kind == pb2.SWITCH_UNREACHABLE:
            self._hints["switch"] = event.reason
        elif event.kind == pb2.SWITCH_BACK:
            self._hints.pop("switch", None)
        return False


async def _wait(event: asyncio.Event, timeout_s: float) -> bool:
    """Whether the event is set; waits for it."""
    try:
        await asyncio.wait_for(event.wait(), timeout_s)
    except asyncio.TimeoutError:
        return False
    return True
