"""Keeps a worker's membership while it trains: heartbeats, and a stream of what happens.

Two threads of their own; neither holds up the data path. Training outlives the controller: while it
is away both just try again. What ends the job is told to the session's failure latch.
"""

from __future__ import annotations

import logging
import threading
import time

from ina.errors import InaError
from ina.extension.host import Transport
from ina.host.aggregator import OthersHere, OwnAggregator
from ina.host.calls import end_of
from ina.host.client import ControllerClient, EventStream
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    JobEndedError,
    MembershipEndedError,
    SwitchLostError,
    WorkerLostError,
)
from ina.host.failure import who
from ina.host.failure_latch import FailureLatch
from ina.host.join import Grant
from ina.host.node import NodeOfHost
from ina.host.progress import ProgressReporter
from ina.host.remapper import Remapper
from ina.host.remapping import Remapping
from ina.host.shared_results import LOOK_S, SharedResults
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

# After NOT_FOUND: for the stream to bring the reason, which says more.
_REASON_GRACE_S = 1.0
# While the controller is away. Soon, whatever the lease: it may come back with a shorter one.
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.1, 2.0
_JOIN_S = 5.0
_REMAPS = (pb2.JOB_REMAPS, pb2.JOB_REMAPPED, pb2.JOB_REMAP_OFF)
# A heartbeat's answer, at most: by then another controller may be worth a try.
_ANSWER_S = 5.0
# Where nothing listens any more, the process is dead; this is for one that was about to say more.
_REFUSED_S = 2.0


class Membership:
    """One worker's, kept alive. stop() it before leaving; then close() it, before the client."""

    def __init__(
        self,
        grant: Grant,
        transport: Transport,
        client: ControllerClient,
        latch: FailureLatch,
        remapping: Remapping,
        controller_with_rank: int | None = None,
        node: NodeOfHost | None = None,
        aggregator: OwnAggregator | None = None,
    ) -> None:
        """`aggregator`: of the job, if this rank runs it."""
        self._grant = grant
        self._transport = transport
        self._client = client
        self._latch = latch
        self._node = node
        self._aggregator = aggregator
        self._others = OthersHere(grant.ticket)
        self.controller_is_dead = False
        """With the rank in whose process it was: nobody is there to be left."""
        rank = grant.ticket.rank
        # The controller in this very process does not die before it.
        self._host_rank = None if controller_with_rank == rank else controller_with_rank
        # What the controller wants now: it may have been restarted with another lease.
        self._lease_s, self._heartbeat_s = grant.lease_s, grant.heartbeat_s
        self._reporter = ProgressReporter(transport, wishes=grant.wishes)
        self._windows = remapping.windows
        self._remapper = Remapper(remapping, client, grant.credentials, self._end)
        self._shared = SharedResults(who(grant.ticket), grant.link, transport)
        self._heard = time.monotonic()  # from the controller
        self._away = False
        self._refused_since: float | None = None
        self._others_leave = False
        self._chunks_done = 0
        # While it is open the controller's process runs: it is pinged, where that process is a
        # rank's, and native threads answer, also while that rank holds Python's lock for long.
        self._stream_is_open = False
        if self._host_rank is not None:
            client.ping(self._lease_s)
        self._stop = threading.Event()
        self._hurry = threading.Event()  # heartbeat now
        self._look = threading.Event()  # open the stream now
        self._lock = threading.Lock()
        self._stream: EventStream | None = None
        name = f"{grant.ticket.job_name}-{rank}"
        self._threads = [
            threading.Thread(target=self._beat, name=f"ina-beat-{name}", daemon=True),
            threading.Thread(target=self._watch, name=f"ina-watch-{name}", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def speak(self) -> bool:
        """Send a heartbeat at once; returns whether the controller may have an answer to it."""
        self._hurry.set()
        return not self._stop.is_set()

    def stop(self) -> None:
        """Send no more heartbeats and report nothing more. Idempotent.

        The stream stays: without it and heartbeats the controller would take the worker for dead.
        """
        with self._lock:
            self._stop.set()
        self._hurry.set()
        self._look.set()
        self._remapper.stop()

    def wait_for_others(self) -> None:
        """Where their results are made in this process: until they are done, and have left."""
        if self._aggregator is None:
            return
        self.speak()
        if not self._others.wait(self._aggregator.patience_s):
            _log.warning(
                "%s: ends the job's aggregator although others have not left after %g s",
                *(self._who(), self._aggregator.patience_s),
            )

    def close(self) -> None:
        """End both threads. Idempotent."""
        self.stop()
        with self._lock:
            if self._stream is not None:
                self._stream.cancel()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(_JOIN_S)
                if thread.is_alive():
                    _log.warning("%s: thread %s does not end", self._who(), thread.name)
        # Not kept until the interpreter ends: a stream takes its lock when it is freed, and by then
        # gRPC's thread may have been stopped for good while it held that lock.
        with self._lock:
            self._stream = None

    def _beat(self) -> None:
        while not self._stop.is_set():
            progress = self._reporter.report()
            progress.windows.CopyFrom(self._windows.state(self._transport.stats()))
            progress.shared_results_missing = self._shared.missing
            if self._node is not None and (counts := self._node.counts()) is not None:
                progress.node.CopyFrom(counts)
            if self._aggregator is not None and (made := self._aggregator.counts()) is not None:
                progress.aggregator.CopyFrom(made)
            timeout_s = max(min(self._lease_s / 2, _ANSWER_S), self._heartbeat_s)
            if progress.chunks_done > self._chunks_done:  # the rank with the controller took part
                self._chunks_done = progress.chunks_done
                self._heard = max(self._heard, time.monotonic() - progress.silent_s)
            try:
                reply = self._client.heartbeat(self._grant.credentials, progress, timeout_s)
            except MembershipEndedError as error:
                self._look.set()
                self._stop.wait(_REASON_GRACE_S)
                return self._end(JobEndedError(f"{self._who()}: {error}"))
            except (ControllerUnavailableError, ControllerTimeoutError) as error:
                self._on_silence(error)
            except ControllerError as error:
                if not self._stop.is_set():
                    _log.warning("%s", error)
            else:
                self._on_answer(reply)
            self._check_switch(progress)
            soon_s = min(self._heartbeat_s, _MAX_PAUSE_S)
            self._pause(soon_s if self._away else self._heartbeat_s)

    def _pause(self, wait_s: float) -> None:
        """Wait for the next heartbeat; less when there is something to tell."""
        end = time.monotonic() + wait_s
        while (left_s := end - time.monotonic()) > 0:
            looks = self._shared.is_watched or self._others_leave
            if self._hurry.wait(min(left_s, LOOK_S) if looks else left_s):
                break
            if self._shared.look():
                break
            # What the others never will begin cannot end: the controller is to know soon.
            if self._others_leave and self._reporter.has_begun_more:
                break
        self._hurry.clear()

    def _on_answer(self, reply: pb2.HeartbeatReply) -> None:
        self._heard = time.monotonic()
        if reply.ranks_here == 1:  # one may have left before the stream was open
            self._others.left(range(self._grant.ticket.world_size))
        if reply.lease_s > 0 and reply.heartbeat_s > 0:
            self._lease_s, self._heartbeat_s = reply.lease_s, reply.heartbeat_s
        self._remapper.heard(reply.remaps_to)
        if self._away:
            self._away = False
            _log.warning("%s: controller %s is back", self._who(), self._client.address)

    def _on_silence(self, error: ControllerError) -> None:
        if self._stop.is_set():
            return
        if not self._away:
            self._away = True
            _log.warning("%s; %s", error, self._what_now())
        self._client.try_next()
        if self._client.has_others:
            with self._lock:  # it follows: a controller that hangs keeps its stream open for ever
                if self._stream is not None:
                    self._stream.cancel()
        if self._host_rank is not None and not self._stream_is_open:
            self._end_if_dead(self._host_rank)

    def _end_if_dead(self, rank: int) -> None:
        """What the silence of the controller in a rank's process means."""
        silent_s = time.monotonic() - self._heard
        # The next look, a heartbeat later, would be after the lease.
        if silent_s + self._heartbeat_s > self._lease_s:
            what = (
                f"rank {rank} is dead, stopped or not running Python: the controller and the "
                f"switch in its process have not answered for {silent_s:.0f} s"
            )
        elif silent_s > _REFUSED_S and self._client.is_refused():
            what = f"rank {rank} has died: nothing listens any more where its controller was"
        else:
            return
        self.controller_is_dead = True
        self._end(WorkerLostError(f"{self._who()}: {what} ({self._last_seq()})", (rank,)))

    def _what_now(self) -> str:
        """What follows from a controller that is away."""
        if self._host_rank is None:
            return "sums do not need it; trying again"
        return (
            f"it runs in rank {self._host_rank}'s process, and so does the switch: trying again, "
            f"for {self._lease_s:g} s"
        )

    def _check_switch(self, progress: pb2.Progress) -> None:
        """Give the switch up once its address has refused every packet for a lease."""
        now = time.monotonic()
        if not progress.switch_refuses or not progress.in_flight:
            self._refused_since = None
            return
        if self._refused_since is None:
            self._refused_since = now
        refused_s = now - self._refused_since
        # A controller that dies with the switch is the better explanation.
        if refused_s < self._lease_s or (self._away and self._host_rank is not None):
            return
        ticket, node = self._latch.ticket, self._grant.node
        # So is the controller's word on the rank, which it has once that rank's lease is over.
        if node is not None and not self._away and refused_s < 2 * self._lease_s:
            return
        if node is not None:
            what = (
                f"rank {node.rank} is gone, and this host's node with it: its process has closed"
                f" the shared memory, and not answered for {refused_s:.0f} s ({self._last_seq()})"
            )
            return self._end(WorkerLostError(f"{self._who()}: {what}", (node.rank,)))
        how = f"nothing has listened at {ticket.node_of(progress.oldest_seq)}"
        if self._transport.stats().kind == "shm":
            how = "it has closed the shared memory, and not answered"
        self._end(
            SwitchLostError(
                f"{self._who()}: the switch is gone: {how} for {refused_s:.0f} s "
                f"({self._last_seq()})"
            )
        )

    def _watch(self) -> None:
        pause_s, is_again = _FIRST_PAUSE_S, False
        while not self._stop.is_set():
            with self._lock:
                if self._stop.is_set():
                    return
                stream = self._stream = self._client.watch(self._grant.credentials)
            try:
                self._stream_is_open = stream.begins()
                if self._stream_is_open:  # that a stall is over may have been said meanwhile
                    self._latch.hint("stall", None)
                    if is_again:  # and that the mapping changes, which a heartbeat's answer says
                        self._hurry.set()
                for event in stream:
                    pause_s = _FIRST_PAUSE_S
                    if self._on_event(event):
                        return
            except MembershipEndedError:
                self._hurry.set()  # the heartbeat's answer decides
                return
            except ControllerError as error:
                _log.debug("%s", error)
            finally:
                self._stream_is_open = False
            # Without its stream the controller takes this worker for dead if no heartbeat comes.
            self._hurry.set()
            is_again = True
            self._look.wait(pause_s)
            self._look.clear()
            pause_s = min(2 * pause_s, max(self._heartbeat_s, _FIRST_PAUSE_S), _MAX_PAUSE_S)

    def _on_event(self, event: pb2.JobEvent) -> bool:
        """Return whether it was the last."""
        ticket = self._grant.ticket
        if event.epoch not in (0, ticket.epoch):
            return False
        end = end_of(event, self._who())
        if end is not None:
            self._end(end)
            return True
        if event.kind == pb2.JOB_STALLED:
            _log.warning("%s: %s", self._who(), event.reason)
            self._latch.hint("stall", event.reason)
        elif event.kind == pb2.RANKS_DIFFER:
            self._hurry.set()  # each heartbeat says what was submitted
        elif event.kind == pb2.JOB_RESUMED:
            _log.warning("%s: goes on %s", self._who(), event.reason)
            self._latch.hint("stall", None)
        elif event.kind == pb2.MEMBER_LEFT:
            self._others.left(event.ranks)
            self._others_leave = True
            self._hurry.set()
            for rank in event.ranks:
                self._latch.hint(f"rank {rank}", f"rank {rank} has left the job")
        elif event.kind == pb2.JOB_WINDOWS:
            self._windows.take(event.windows, self._transport)
        elif event.kind in _REMAPS:
            self._remapper.ask(is_over=event.kind == pb2.JOB_REMAPPED)
        elif event.kind == pb2.SWITCH_UNREACHABLE:
            _log.warning("%s: %s", self._who(), event.reason)
            self._latch.hint("switch", event.reason)
        elif event.kind == pb2.SWITCH_BACK:
            _log.warning("%s: the controller reaches the switch again", self._who())
            self._latch.hint("switch", None)
        return False

    def _end(self, error: InaError) -> None:
        self._others.left(range(self._grant.ticket.world_size))
        if not self._stop.is_set():
            self._latch.fail(error)

    def _who(self) -> str:
        return who(self._grant.ticket)

    def _last_seq(self) -> str:
        worker = self._transport.stats().worker
        if worker.chunks_done + worker.exponent_rounds == 0:
            return "no result came yet"
        return f"last sequence number {worker.last_seq}"
