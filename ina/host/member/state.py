"""What the rules of one membership have between them."""

from __future__ import annotations

from collections.abc import Iterable

from ina.errors import InaError
from ina.host.failure import who
from ina.host.member.client import ControllerClient, EventStream
from ina.host.member.driver import Driver, Flag
from ina.host.member.join import Grant
from ina.host.member.join_link import JoinLink
from ina.host.member.latch import FailureLatch, Voice
from ina.host.ticket import Ticket


class OthersHere:
    """The ranks beside this one that have not left the job, as far as was heard."""

    def __init__(self, ticket: Ticket, none_left: Flag) -> None:
        """`none_left`: set once all have."""
        self._here = set(range(ticket.world_size)) - {ticket.rank}
        self.none_left = none_left
        self.left(())

    def left(self, ranks: Iterable[int]) -> None:
        """These have."""
        self._here.difference_update(ranks)
        if not self._here:
            self.none_left.set()

    def all_left(self) -> None:
        """All have, or nobody will be heard of any more."""
        self.left(list(self._here))


class MemberState:
    """One worker's."""

    def __init__(
        self, grant: Grant[JoinLink], client: ControllerClient, latch: FailureLatch, driver: Driver,
        voice: Voice,
    ) -> None:  # fmt: skip
        self.grant, self.client, self.latch, self.driver = grant, client, latch, driver
        self.who = who(grant.ticket)
        self.hurry, self.stopping = voice.hurry, voice.stopping
        self.look = driver.flag()
        """Open the stream now."""
        self.others = OthersHere(grant.ticket, driver.flag())
        self.others_leave = False
        self.stream: EventStream | None = None
        self.stream_is_open = False
        """While it is the controller's process runs: it is pinged, where that process is a rank's,
        and native threads answer, also while that rank holds Python's lock for long."""
        rank = grant.options.controller_with_rank
        # The controller in this very process does not die before it.
        self.host_rank = None if rank == grant.ticket.rank else rank

    async def end(self, error: InaError) -> None:
        """The job cannot go on."""
        self.others.all_left()
        if not self.stopping.is_set():
            await self.latch.fail(error)

    def break_stream(self) -> None:
        """It is opened again, unless the membership ends."""
        if self.stream is not None:
            self.stream.cancel()
