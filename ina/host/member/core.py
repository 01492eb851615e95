"""A worker's membership from the grant of its place to its end."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ina.extension.host import TransportEngine
from ina.host.errors import ControllerError, MembershipEndedError
from ina.host.member.beat import Heart, Shared
from ina.host.member.client import ControllerClient
from ina.host.member.driver import Driver
from ina.host.member.join import Grant
from ina.host.member.join_link import JoinLink
from ina.host.member.latch import FailureLatch, Voice
from ina.host.member.remap import Remapper
from ina.host.member.silence import Silence
from ina.host.member.state import MemberState
from ina.host.member.watch import Watch
from ina.host.progress import ProgressReporter
from ina.host.remapping import Remapping

_log = logging.getLogger(__name__)

BEAT, WATCH = "beat", "watch"
_JOIN_S = 5.0


class MemberCore:
    """One worker's. start() it once, and leave() at the end.

    Training outlives the controller: while it is away the worker just tries again. What ends the
    job is told to the latch.
    """

    def __init__(
        self, grant: Grant[JoinLink], client: ControllerClient, transport: TransportEngine,
        latch: FailureLatch, remapping: Remapping, shared: Shared, driver: Driver, voice: Voice,
    ) -> None:  # fmt: skip
        """`voice`: the latch's, too."""
        self._state = state = MemberState(grant, client, latch, driver, voice)
        self._transport = transport
        self._silence = Silence(state, transport)
        self._remapper = Remapper(state, remapping, transport)
        rules = remapping.windows, self._remapper, self._silence
        self._heart = Heart(state, transport, *rules, shared)
        self._watch = Watch(state, transport, *rules)
        self._is_kept = grant.heartbeat_s > 0

    def start(self) -> None:
        """Heartbeats and the stream, if the controller wants any."""
        if not self._is_kept:
            return
        state = self._state
        if state.host_rank is not None:
            state.client.wire.ping(self._silence.lease_s)
        state.driver.start(BEAT, self._heart.run)
        state.driver.start(WATCH, self._watch.run)

    def speak(self) -> None:
        """Send a heartbeat at once."""
        self._state.hurry.set()

    async def leave(self, stop_sending: Callable[[], None], *, is_frozen: bool = False) -> None:
        """End the membership: in this order, whatever has happened.

        `stop_sending`: ends the transport, and all that waits for it. `is_frozen`: the session
        stopped before, and the others do not need it for what they have begun.
        """
        state, last = self._state, None
        if self._is_kept:
            if not is_frozen and await state.latch.error() is None:
                await self._wait_for_others()
            await self.stop()
            if not is_frozen:
                reporter = ProgressReporter(self._transport, state.driver.now_s)
                last = reporter.report(whole=True)
        await state.driver.outside(stop_sending)
        try:
            if not self._silence.controller_is_dead:
                await state.client.leave(state.grant.credentials, last, state.latch.settled())
        except MembershipEndedError as error:
            _log.debug("%s", error)  # it has ended already
        except ControllerError as error:
            _log.warning("%s", error)
        # Before that the stream stays: without it the controller would take the worker for dead.
        state.break_stream()
        for name in (BEAT, WATCH):
            await state.driver.ended(name, _JOIN_S)
        # Not kept until the interpreter ends: a stream takes its lock when it is freed, and by then
        # gRPC's thread may have been stopped for good while it held that lock.
        state.stream = None

    async def stop(self) -> None:
        """Send no more heartbeats and report nothing more. Idempotent."""
        for flag in (self._state.stopping, self._state.hurry, self._state.look):
            flag.set()
        await self._remapper.stop()

    async def _wait_for_others(self) -> None:
        """Where their results are made in this process: until they are done, and have left."""
        state, aggregator = self._state, self._state.grant.aggregator
        if aggregator is None:
            return
        self.speak()
        none_left = state.others.none_left
        if not await state.driver.wait(none_left, aggregator.patience_s):
            _log.warning(
                "%s: ends the job's aggregator although others have not left after %g s",
                *(state.who, aggregator.patience_s),
            )
