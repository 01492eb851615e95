"""Policy ``on_switch_loss="fallback"``: a group goes on over Gloo when its switch is lost.

Once one rank knows, no rank sends or accepts anything any more. Then the ranks bring each other to
the same set of finished chunks (:mod:`ina.torch.fallback.agreement`), sum the others over Gloo
(:mod:`ina.torch.fallback.resume`), and every later all_reduce goes there too, until all ranks have
joined the job anew (:mod:`ina.torch.fallback.comeback`) and go back to the network from the same
all_reduce on (:mod:`ina.torch.fallback.gate`). No sum is lost, and none is counted twice.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import torch
from torch._C._distributed_c10d import PrefixStore, Store

from ina.errors import InaError
from ina.host import Session
from ina.host.frozen import Frozen
from ina.host.member.latch import OnFailure
from ina.host.word_sum import Place
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType
from ina.torch.errors import FallbackError, GroupClosedError
from ina.torch.fallback.agreement import agree, hand_on
from ina.torch.fallback.comeback import Comeback, Seats
from ina.torch.fallback.gate import Ballot, Gate, JoinedSession, Route
from ina.torch.fallback.member import Member
from ina.torch.fallback.peers import GlooPeers
from ina.torch.fallback.resume import Resumption
from ina.torch.fallback.signal import POLL_S, LossSignal, own_connection
from ina.torch.fallback.sums import GlooSum, GlooSums
from ina.torch.fallback.told import SwitchLoss

_log = logging.getLogger("ina.torch")

_AGREE_TIMEOUT = timedelta(seconds=60)
"""A rank answers as soon as it knows, whatever it computes: this bounds one that is gone."""
_END_TIMEOUT_S = 10.0


class Fallback:
    """Watches over the group's session, and takes its place while the switch is lost."""

    def __init__(
        self,
        store: Store,
        rank: int,
        size: int,
        timeout: timedelta,
        name: str,
        *,
        returns: bool = False,
    ) -> None:
        """Connects the ranks, all of which must call it; ``name`` is the group's.

        ``returns``: go back to the network once all ranks can.
        """
        self._rank, self._size, self._name, self._timeout = rank, size, name, timeout
        self._where = f"group {name}, rank {rank}"
        self._returns = returns
        self._peers = GlooPeers(store, rank, size, timeout)
        self._sums = GlooSums(self._peers, name)
        self._store = own_connection(store, "ina/switch")
        self._gate = Gate(_Gloo(self._sums), self._crossed)
        self._member = Member(LossSignal(self._store, size))
        self._member.used.set()
        self._loss: SwitchLoss | None = None
        self._noticed_s = 0.0
        self._back = 0
        self._closing = threading.Event()
        self._seats: Seats | None = None
        self._comeback: Comeback | None = None
        self._monitor: threading.Thread | None = None

    @property
    def loss(self) -> SwitchLoss | None:
        """How the group came to go on over Gloo, the last time; None: it never has."""
        return self._loss

    @property
    def returns(self) -> int:
        """How often the group has gone back to the network."""
        return self._back

    @property
    def is_away(self) -> bool:
        """Whether sums are to come here: the session does not take them."""
        return self._gate.way is not Route.NETWORK

    @property
    def on_failure(self) -> OnFailure:
        """For the first session."""
        return self._member.on_failure

    def watch(self, session: Session, seats: Seats) -> None:
        """Take over when ``session`` loses its switch, or another rank's does."""
        self._member.joined(session)
        self._seats = seats
        self._comeback = Comeback(seats, self._gate, self._where, self._closing)
        self._monitor = threading.Thread(
            target=self._watch, name=f"ina-fallback-{self._name}", daemon=True
        )
        self._monitor.start()

    def submit(self, what: Collective, source: torch.Tensor, target: torch.Tensor) -> GlooSum:
        """Do it over Gloo, or over the session that the group goes back to.

        Both: contiguous; the same one for all_reduce.
        """
        one = GlooSum(what, source, target)
        self._gate.submit(one)
        return one

    def fail(self, error: InaError) -> None:
        """End what goes over Gloo, or waits to, with ``error``; and all that comes."""
        if self._gate.fail(error):
            self._sums.close(error)

    def close(self, leave_timeout_s: float) -> None:
        """Wait at most so long until no rank needs this one's results; then stop. Idempotent."""
        member = self._member
        session, signal = member.session, member.signal
        if session is not None and session.error() is None and leave_timeout_s > 0:
            assert signal is not None, "it is used"
            if self._gate.way is Route.NETWORK:
                signal.done(leave_timeout_s, lambda: session.error() is not None)
            if signal.heard() is not None:
                member.settled.wait(leave_timeout_s)
        self._closing.set()
        self._member.lost.set()
        self.fail(GroupClosedError(f"group {self._name}: it has been destroyed"))
        if self._comeback is not None:
            self._comeback.end()
        if self._monitor is not None and self._monitor is not threading.current_thread():
            self._monitor.join(_END_TIMEOUT_S)

    def _watch(self) -> None:
        assert self._comeback is not None
        member: Member | None = self._member
        while member is not None:
            self._wait_for_loss(member)
            if self._closing.is_set() or member.reason is None:
                member.settled.set()
                return
            resumption = self._take_over(member, member.reason)
            member.settled.set()
            if resumption is None or not self._gate.returns:
                return
            while not resumption.ended.wait(POLL_S):
                if self._closing.is_set():
                    return
            member = self._comeback.next(member)

    def _wait_for_loss(self, member: Member) -> None:
        while not member.lost.wait(POLL_S) and member.reason is None:
            if self._closing.is_set():
                return
            member.listen()

    def _take_over(self, member: Member, reason: str) -> Resumption | None:
        """From the network to Gloo; None: it failed, and so has the group."""
        assert member.session is not None
        assert member.signal is not None
        _log.warning("ina: %s: %s; going on over Gloo", self._where, reason)
        member.signal.tell(reason)
        self._gate.recover()
        failed = self._gate.error
        resumption: Resumption | None = None
        self._noticed_s, unix_s = time.monotonic(), time.time()
        self._peers.set_timeout(min(self._timeout, _AGREE_TIMEOUT))
        try:
            # A rank that cannot go on says so, lest the others wait for it.
            frozen = _freeze(member.session) if failed is None else failed
            if isinstance(frozen, Frozen):
                resumption = Resumption(frozen, member.before)
            agreed = agree(frozen, self._peers, returns=self._returns and member.may_return)
            assert isinstance(frozen, Frozen)  # else no rank has agreed
            assert resumption is not None
            received = hand_on(frozen, agreed.steps, self._peers)
            self._peers.set_timeout(self._timeout)
            export = frozen.export
            self._sums.sum_as(Place(self._rank, self._size, export.chunk_words))
            resumption.start(agreed.steps, self._sums)
        except Exception as error:  # whatever it is: nobody may wait for sums that never come
            said = " ".join(str(error).split())
            lost = FallbackError(f"{self._where}: {reason}; and it cannot go on over Gloo: {said}")
            _log.error("ina: %s", lost)
            self.fail(lost)
            if resumption is not None:
                resumption.fail(lost)
            return None
        recovery_s = time.monotonic() - self._noticed_s
        done = (resumption.operations, resumption.elems)
        self._loss = SwitchLoss(reason, unix_s, recovery_s, received, *done)
        self._gate.open(
            member.before + export.submitted,
            member.before + agreed.newest,
            returns=agreed.returns,
        )
        _log.warning(
            "ina: %s: goes on over Gloo, %.2f s after it noticed: %d results came from other ranks,"
            " %d elements of %d all_reduces under way are summed by Gloo",
            *(self._where, recovery_s, received, resumption.elems, resumption.operations),
        )
        return resumption

    def _crossed(self, network: JoinedSession) -> None:
        """In the midst of it: all ranks send to this session from now on."""
        assert isinstance(network, Member)
        assert self._seats is not None
        assert self._loss is not None
        self._back += 1
        # Each has keys of its own: nobody may hear of a former loss, or of who was done then.
        prefix = f"return{self._back}/{network.epoch}"
        network.signal = LossSignal(PrefixStore(prefix, self._store), self._size)
        network.since_s = time.monotonic()
        self._member = network
        self._seats.use()
        away_s = time.monotonic() - self._noticed_s
        self._loss = replace(
            self._loss,
            returned_unix_s=time.time(),
            away_s=away_s,
            gloo_operations=self._gate.gloo_sums,
        )
        network.used.set()
        _log.warning(
            "ina: %s: goes back to the network: %d all_reduces went over Gloo in between, %.1f s",
            *(self._where, self._gate.gloo_sums, away_s),
        )


class _Gloo:
    """See :class:`ina.torch.fallback.gate.Gloo`."""

    def __init__(self, sums: GlooSums) -> None:
        self._sums = sums

    def start(self, one: GlooSum) -> None:
        self._sums.start(one)

    def ask(self, ballot: Ballot, answered: Callable[[Ballot | None], None]) -> None:
        numbers = torch.tensor([ballot.epoch, ballot.negated, ballot.pause], dtype=torch.int64)
        one = GlooSum(Collective(ValueType.INT32, numbers.numel()), numbers)

        def ended(one: GlooSum) -> None:
            try:
                one.wait()
            except InaError:
                answered(None)
            else:
                answered(Ballot(*map(int, numbers)))

        one.add_done_callback(ended)
        self._sums.start_least(one)


def _freeze(session: Session) -> Frozen | InaError:
    """The frozen session, or why it has failed before it could be frozen."""
    try:
        return session.freeze()
    except InaError as error:
        return error
