"""Workers and switches of one job or several, and all that a network can do to them.

Two things keep the states few, and lose none that could break a promise:

* What only adds packets to the network happens at once (``eager``). A larger set allows all that
  the smaller one does, for any packet of it may be lost; and it is reached by steps of its own.
* What has reached a worker is remembered as that alone: whose packet brought it has been checked.
  Packets that will never do anything any more are *spent*, and forgotten.

How far all workers are is a number, too, so that a state is compared quickly.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from tests.protocol.moves import Arrival, Moves, numbers_of, put
from tests.protocol.search import Model, Numbered, Progress, Violation

W = TypeVar("W", bound=Hashable)
"""How far all workers are."""

M = TypeVar("M", bound=Moves[Any])

Told = tuple[int, ...]
"""What each switch has been told."""

Cells = tuple[int, ...]
"""Slots, by number."""


class State(NamedTuple):
    """Everything that may differ between two moments."""

    workers: int
    told: Told
    slots: tuple[int, ...]  # the number of each one's state
    network: int  # a bit for each packet or arrival
    resets: int  # that may still happen


class Events(NamedTuple):
    """What the packets for one slot may do to it."""

    added: int  # to the network, by those that leave the slot as it is
    targets: Cells  # the slots that these are for
    spent: int
    changes: tuple[tuple[Step, int, int, Cells], ...]
    """A packet, the slot after it, what it adds, and the slots that are to be looked at."""


class Step(NamedTuple):
    """A packet arrives; a sentence only when it is printed."""

    moves: Moves[Any]
    number: int
    old: bool

    def __str__(self) -> str:
        return f"{self.moves.known[self.number]} arrives" + (" at an old slot" if self.old else "")


class Turn(NamedTuple):
    """Of a worker, or of what a switch is told."""

    what: object
    workers: int
    told: Told
    sent: int  # what the worker sends because of it
    cells: Cells = ()  # the slots that are to be looked at
    needs: int = 0  # the arrival without which it does not happen, as a bit
    broken: str = ""  # the promise that it breaks


class Loss(NamedTuple):
    """Of registers."""

    what: str
    cells: Cells
    resets: int  # how many of those that may happen it takes


class Sending(NamedTuple):
    """A chunk that a worker has no result of: its packet, as it is sent first, and again."""

    first: int
    again: int
    chunk: object  # which it is


class Run(NamedTuple):
    """Where resends have brought the workers."""

    workers: int
    told: Told
    slots: tuple[int, ...]
    unsent: frozenset[object]  # chunks that have never been sent
    old: bool  # whether slots have always aged when a packet comes, or never have
    may_restart: bool


class Lossy(Model[State], Generic[W, M]):
    """What tree and shared slots have in common. Subclasses say what workers do."""

    ages: tuple[bool, ...] = (False,)
    """See :class:`Run`."""

    def __init__(self, table: M, workers: W, *, eager: bool, live: bool) -> None:
        self.table = table
        self.eager, self.live = eager, live
        self.losses: tuple[Loss, ...] = ()
        self.delivered: Counter[int] = Counter()  # by packet: in all runs
        self._progress = Progress(
            self._resent,
            has_ended=lambda run: not any(self._open(run.workers)),
            tell=lambda run: self.far[run.workers],
        )
        self.far: Numbered[W] = Numbered()
        self._events: list[dict[tuple[int, int, int], Events]] = [{} for _ in table.relevant]
        self._targets_of: dict[int, Cells] = {}
        self._turns: dict[tuple[int, Told], tuple[Turn, ...]] = {}
        self._opened: dict[int, tuple[Sending | None, ...]] = {}
        self._taken: dict[tuple[int, int], tuple[int, object]] = {}
        self._ended: dict[tuple[int, Told], tuple[int, Told]] = {}
        self._started = self.far.number(workers)

    # -- what a subclass says --

    def turns(self, far: W, told: Told) -> Iterable[Turn]:
        """What workers may do, and switches be told."""
        raise NotImplementedError

    def open(self, far: W) -> Iterable[Sending | None]:
        """What each worker resends, None where it has nothing to; always as many."""
        raise NotImplementedError

    def take(self, far: W, it: Arrival) -> tuple[W, object]:
        """After a worker's result, and which chunk it begins because of it."""
        raise NotImplementedError

    def ended(self, far: W, told: Told) -> tuple[W, Told]:
        """When all changes that have begun are over."""
        return far, told

    def is_spent(self, number: int, sent: int) -> bool:
        """Whether a packet that has sent this, and left its slot as it was, is forgotten."""
        raise NotImplementedError

    def useless(self, workers: int) -> int:
        """Arrivals that nobody waits for any more."""
        return 0

    def may_restart(self, state: State) -> bool:
        """Whether a restart may be needed to go on."""
        return False

    # -- states --

    def seen(self, state: State) -> tuple[object, ...]:
        """A state but for what is in flight, without numbers."""
        slots = tuple(self.table.slot_states[slot] for slot in state.slots)
        return self.far[state.workers], state.told, slots, state.resets

    def begin(self, told: Told, network: int, resets: int) -> State:
        """The first state."""
        slots = (self.table.power_on,) * len(self._events)
        return self._close((self._started, told, slots, network, resets), range(len(slots)))

    def _close(
        self, opened: tuple[int, Told, tuple[int, ...], int, int], cells: Iterable[int]
    ) -> State:
        """A state with all that happens in it without changing a slot, seen from some slots."""
        workers, told, slots, network, resets = opened
        if self.eager:
            relevant, switch_of = self.table.relevant, self.table.switch_of
            pending, spent = set(cells), 0
            while pending:
                cell = pending.pop()
                key = (told[switch_of[cell]], slots[cell], network & relevant[cell])
                events = self._events[cell].get(key) or self._look(cell, key)
                spent |= events.spent
                new = events.added & ~network
                if new:
                    network |= new
                    pending.update(self.targets(new))
            network &= ~spent
        return State(workers, told, slots, network & ~self.useless(workers), resets)

    def targets(self, mask: int) -> Cells:
        """The slots that packets are for."""
        if mask not in self._targets_of:
            cells = {self.table.cells[number] for number in numbers_of(mask)}
            self._targets_of[mask] = tuple(cells - {-1})
        return self._targets_of[mask]

    def _look(self, cell: int, key: tuple[int, int, int]) -> Events:
        told, slot, packets = key
        table = self.table
        added, spent, changes = 0, 0, []
        for number in numbers_of(packets):
            for old in table.ways(number, slot, told):
                after, leaving = table.move(number, slot, told, old)
                sent = table.mask(leaving)
                if after != slot:
                    cells = tuple({cell, *self.targets(sent)})
                    changes.append((Step(table, number, old), after, sent, cells))
                else:
                    added |= sent
                    if self.is_spent(number, sent):
                        spent |= 1 << number
        events = Events(added, self.targets(added), spent, tuple(changes))
        self._events[cell][key] = events
        return events

    def moves(self, state: State) -> Iterator[tuple[object, State]]:
        workers, told, slots, network, resets = state
        relevant, switch_of, close = self.table.relevant, self.table.switch_of, self._close
        for cell, slot in enumerate(slots):
            key = (told[switch_of[cell]], slot, network & relevant[cell])
            events = self._events[cell].get(key) or self._look(cell, key)
            for step, after, sent, cells in events.changes:
                changed = (*slots[:cell], after, *slots[cell + 1 :])
                yield step, close((workers, told, changed, network | sent, resets), cells)
        if not self.eager:
            yield from self._unchanged(state)
        for turn in self._turns_at(workers, told):
            if turn.needs and not turn.needs & network:
                continue
            if turn.broken:
                raise Violation(turn.broken)
            cells = turn.cells + self.targets(turn.sent)
            after_it = (turn.workers, turn.told, slots, network | turn.sent, resets)
            yield turn.what, close(after_it, cells)
        for loss in self.losses:
            if loss.resets <= resets:
                left = list(slots)
                for cell in loss.cells:
                    left[cell] = self.table.power_on
                zeroed = tuple(left)
                if zeroed != slots:
                    after_it = (workers, told, zeroed, network, resets - loss.resets)
                    yield loss.what, close(after_it, loss.cells)

    def _unchanged(self, state: State) -> Iterator[tuple[object, State]]:
        """Steps of their own, where they are not taken at once."""
        for cell, slot in enumerate(state.slots):
            told = state.told[self.table.switch_of[cell]]
            for number in numbers_of(state.network & self.table.relevant[cell]):
                for old in self.table.ways(number, slot, told):
                    after, leaving = self.table.move(number, slot, told, old)
                    if after == slot and leaving:
                        sent = state._replace(network=state.network | self.table.mask(leaving))
                        yield Step(self.table, number, old), self._close(sent, ())

    def _turns_at(self, workers: int, told: Told) -> tuple[Turn, ...]:
        key = (workers, told)
        if key not in self._turns:
            self._turns[key] = tuple(self.turns(self.far[workers], told))
        return self._turns[key]

    # -- progress --

    def check(self, state: State) -> None:
        """With all that is in flight lost, and nothing from now on, resends end all jobs.

        Changes that have begun come to their end first.
        """
        if not self.live:
            return
        key = state.workers, state.told
        if key not in self._ended:
            far, told = self.ended(self.far[state.workers], state.told)
            self._ended[key] = self.far.number(far), told
        workers, told = self._ended[key]
        for old in self.ages:
            may_restart = self.may_restart(state)
            self._progress.check(Run(workers, told, state.slots, frozenset(), old, may_restart))

    def run(self, run: Run) -> None:
        """Resends, to the end."""
        self._progress.check(run)

    def _open(self, workers: int) -> tuple[Sending | None, ...]:
        if workers not in self._opened:
            self._opened[workers] = tuple(self.open(self.far[workers]))
        return self._opened[workers]

    def _resent(self, run: Run) -> Run:
        """Each worker sends once what it has no result of: what it has just begun for the first
        time, the rest again. All of it arrives."""
        before = run
        for place in range(len(self._open(run.workers))):
            sending = self._open(run.workers)[place]
            if sending is None:
                continue
            number = sending.again
            if sending.chunk in run.unsent:
                number = sending.first
                run = run._replace(unsent=run.unsent - {sending.chunk})
            run = self._arrived(run, number)
        if run == before and run.may_restart:
            far, _ = self.ended(self.far[run.workers], (1,) * len(run.told))
            return run._replace(
                workers=self.far.number(far), told=(1,) * len(run.told), may_restart=False
            )
        return run

    def _arrived(self, run: Run, number: int) -> Run:
        """After a packet, and all that this brings about."""
        workers, told, slots, unsent = run[:4]
        table = self.table
        queue = [number]
        for number in queue:
            cell = table.cells[number]
            if cell < 0:
                workers, begun = self._take(workers, number)
                if begun is not None:
                    unsent |= {begun}
                continue
            self.delivered[number] += 1
            now = told[table.switch_of[cell]]
            if ways := table.ways(number, slots[cell], now):
                old = run.old and len(ways) == 2
                after, leaving = table.move(number, slots[cell], now, old)
                if after != slots[cell]:
                    slots = put(slots, cell, after)
                queue += leaving
        return Run(workers, told, slots, unsent, run.old, run.may_restart)

    def _take(self, workers: int, number: int) -> tuple[int, object]:
        key = workers, number
        if key not in self._taken:
            it = self.table.known[number]
            assert isinstance(it, Arrival)
            far, begun = self.take(self.far[workers], it)
            self._taken[key] = self.far.number(far), begun
        return self._taken[key]
