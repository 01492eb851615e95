"""What follows from a controller, or a switch, that does not answer."""

from __future__ import annotations

import logging

from ina.errors import InaError
from ina.extension.host import TransportEngine
from ina.host.errors import ControllerError, SwitchLostError, WorkerLostError
from ina.host.failure import SPENT
from ina.host.member.state import MemberState
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

# Where nothing listens any more, the process is dead; this is for one that was about to say more.
_REFUSED_S = 2.0


class Silence:
    """As one worker sees it. Training outlives a controller that is in no rank's process."""

    def __init__(self, state: MemberState, transport: TransportEngine) -> None:
        self._state, self._transport = state, transport
        self._now_s = state.driver.now_s
        # What the controller wants now: it may have been restarted with another lease.
        self.lease_s, self.heartbeat_s = state.grant.lease_s, state.grant.heartbeat_s
        self.is_away = False
        """The controller."""
        self.controller_is_dead = False
        """With the rank in whose process it was: nobody is there to be left."""
        self._heard_s = self._now_s()  # from the controller
        self._chunks_done = 0
        self._refused_since_s: float | None = None

    def progressed(self, progress: pb2.Progress) -> None:
        """Where chunks are done, the rank with the controller has taken part."""
        if progress.chunks_done > self._chunks_done:
            self._chunks_done = progress.chunks_done
            self._heard_s = max(self._heard_s, self._now_s() - progress.silent_s)

    def answered(self, reply: pb2.HeartbeatReply) -> None:
        """The controller has."""
        self._heard_s = self._now_s()
        if reply.lease_s > 0 and reply.heartbeat_s > 0:
            self.lease_s, self.heartbeat_s = reply.lease_s, reply.heartbeat_s
        if self.is_away:
            self.is_away = False
            _log.warning("%s: controller %s is back", self._state.who, self._state.client.address)

    async def missed(self, error: ControllerError) -> None:
        """The controller has not answered, because of ``error``."""
        state = self._state
        if state.stopping.is_set():
            return
        if not self.is_away:
            self.is_away = True
            _log.warning("%s; %s", error, self._what_now())
        state.client.try_next()
        if state.client.has_others:
            state.break_stream()  # it follows: a controller that hangs keeps it open for ever
        if state.host_rank is not None and not state.stream_is_open:
            await self._end_if_dead(state.host_rank)

    async def _end_if_dead(self, rank: int) -> None:
        """What the silence of the controller in a rank's process means."""
        silent_s = self._now_s() - self._heard_s
        # The next look, a heartbeat later, would be after the lease.
        if silent_s + self.heartbeat_s > self.lease_s:
            what = (
                f"rank {rank} is dead, stopped or not running Python: the controller and the "
                f"switch in its process have not answered for {silent_s:.0f} s"
            )
        elif silent_s > _REFUSED_S and await self._state.client.is_refused():
            what = f"rank {rank} has died: nothing listens any more where its controller was"
        else:
            return
        self.controller_is_dead = True
        text = f"{self._state.who}: {what} ({self._last_seq()})"
        await self._state.end(WorkerLostError(text, (rank,)))

    def _what_now(self) -> str:
        """What follows from a controller that is away."""
        if self._state.host_rank is None:
            return "sums do not need it; trying again"
        return (
            f"it runs in rank {self._state.host_rank}'s process, and so does the switch: trying"
            f" again, for {self.lease_s:g} s"
        )

    def lost_switch(self, progress: pb2.Progress) -> InaError | None:
        """Give the switch up once its address has refused every packet for a lease.

        Connections that have failed are no better later.
        """
        now_s, who = self._now_s(), self._state.who
        if self._transport.stats().spent:
            said = self._state.latch.said()
            why = f"{SPENT} ({self._last_seq()})"
            return SwitchLostError(f"{who}: {why}; {said}" if said else f"{who}: {why}")
        if not progress.switch_refuses or not progress.in_flight:
            self._refused_since_s = None
            return None
        if self._refused_since_s is None:
            self._refused_since_s = now_s
        refused_s = now_s - self._refused_since_s
        # A controller that dies with the switch is the better explanation.
        if refused_s < self.lease_s or (self.is_away and self._state.host_rank is not None):
            return None
        ticket, node = self._state.latch.ticket, self._state.grant.node
        # So is the controller's word on the rank, which it has once that rank's lease is over.
        if node is not None and not self.is_away and refused_s < 2 * self.lease_s:
            return None
        if node is not None:
            what = (
                f"rank {node.rank} is gone, and this host's node with it: its process has closed"
                f" the shared memory, and not answered for {refused_s:.0f} s ({self._last_seq()})"
            )
            return WorkerLostError(f"{who}: {what}", (node.rank,))
        how = f"nothing has listened at {ticket.node_of(progress.oldest_seq)}"
        if self._state.grant.link.is_shm:
            how = "it has closed the shared memory, and not answered"
        return SwitchLostError(
            f"{who}: the switch is gone: {how} for {refused_s:.0f} s ({self._last_seq()})"
        )

    def _last_seq(self) -> str:
        worker = self._transport.stats().worker
        if worker.chunks_done + worker.exponent_rounds == 0:
            return "no result came yet"
        return f"last sequence number {worker.last_seq}"
