"""An exhaustive search over a job whose mapping changes, again and again, while anything happens.

The controller is the shipped table of stages (:class:`ina.controller.change.Change`), the slots
are the shipped ones. Packets may be lost, copied, late and in any order, as in ``search``.
Each of the controller's steps comes when it comes; a call of a worker may lose its answer; and the
controller may be killed and started again between any two of them: what it does not store is gone.

Windows are of one chunk, so a mapping is one lane with two slots, and an operation is one chunk.
What no mapping has for the controller is another job's at once, with an epoch that is newer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ina.controller.change import Change, Stage, Step
from ina.protocol.slot_model import Contribution, Outcome, Slot, Tag
from ina.trees.forest import forest_of
from ina.trees.mapping import Mapping
from ina.trees.tree import single
from tests.protocol.moves import put
from tests.protocol.search import Model, Progress, Violation

Cell = tuple[Tag, int, tuple[int, ...]]
"""Of a slot: owner, bitmap, values."""
Answered = tuple[int, int, bool]
"""Of a call of Remap: mapping, S, whether it waits."""


_ANY = Mapping(1, (1,), forest_of(single("s", 1)), {}, 1)
"""Which mappings a change is between, is in the state."""


class Kept(NamedTuple):
    """What a controller has of a change: a :class:`Change` that can be compared."""

    stage: Stage
    first: int = 0
    done: frozenset[int] = frozenset()
    asked: frozenset[int] = frozenset()
    told: frozenset[int] = frozenset()
    seen: frozenset[int] = frozenset()
    is_in_place: bool = False

    def restarted(self) -> Kept:
        """As the store has it; one that no worker knows of is called off."""
        stage = Stage.OFF if self.stage is Stage.INSTALLING else self.stage
        return Kept(stage, self.first, is_in_place=self.is_in_place)


class Worker(NamedTuple):
    """A rank. ``uses`` are the mappings that it has gone over to, in order; ``firsts`` their S."""

    uses: tuple[int, ...] = (0,)
    firsts: tuple[int, ...] = (1,)
    sent: tuple[int, ...] = (0,)
    """Chunks sent at least once, by mapping that it uses."""
    got: tuple[int, ...] = (0,)
    """Chunks whose result it has."""
    knows: int = 0
    """The mapping that its job changes to, as far as it has heard; 0: none."""
    may_send: bool = True
    """By the newest."""
    reserved: int = 0
    """Rank 0: the S that it says; it sends nothing of it by the mapping before. 0: none."""


class State(NamedTuple):
    """Everything that may differ between two moments. Mappings are numbered in their order."""

    workers: tuple[Worker, ...]
    slots: tuple[Cell, ...]
    entries: frozenset[int] = frozenset([0])
    """Mappings that the switch lets in."""
    has: int = 0
    """The mapping that the job has, for the controller, and its S."""
    first: int = 1
    other: int = 0
    """The mapping beside it, while it changes."""
    newest: int = 0
    change: Kept | None = None
    results: frozenset[tuple[int, int]] = frozenset()
    """Mapping and chunk of those on the way."""
    called_off: int = 0


@dataclass
class System(Model[State]):
    """The job, the first slots of its mappings, and what is wrong with it (``bug``)."""

    workers: int = 2
    operations: int = 3
    places: tuple[int, ...] = (0, 2, 0)
    """From one to another that has the same place: that change is in place."""
    restarts: bool = True
    calls_off: int = 1
    """How many changes may be."""
    slack: tuple[int, ...] = (0, 1)
    """How many operations beyond those it has sent rank 0 leaves to the former mapping, in turn."""
    bug: str = ""

    def start(self) -> State:
        cell = (Tag(0, 0), 0, (0,) * self.operations * self.workers)
        return State((Worker(),) * self.workers, (cell,) * (max(self.places) + 2))

    # A worker.

    def order(self, worker: Worker, mapping: int, chunk: int) -> int:
        """Which operation a chunk is, for this worker."""
        return worker.firsts[worker.uses.index(mapping)] + chunk

    def limit(self, worker: Worker, at: int) -> int:
        """The first operation that it does not send by the mapping at this index."""
        if at + 1 < len(worker.uses):
            return worker.firsts[at + 1]
        if not worker.may_send:
            return 0
        if worker.reserved and self.bug != "rank 0 goes on by the former mapping":
            return worker.reserved
        return self.operations + 1

    def sendable(self, worker: Worker) -> Iterator[int]:
        """Indices of mappings by which it may send the next chunk for the first time."""
        for at in range(len(worker.uses)):
            chunk = worker.got[at]
            order = worker.firsts[at] + chunk
            if worker.sent[at] > chunk or order >= self.limit(worker, at):
                continue
            for before in range(at):
                if order < worker.firsts[before] + worker.got[before]:
                    raise Violation(f"a rank that has the result of {order} sends it again")
            stays = self.bug == "what was sent by the former mapping stays there" and at > 0
            if not (stays and order < worker.firsts[at - 1] + worker.sent[at - 1]):
                yield at

    def send(self, worker: Worker, at: int) -> Worker:
        return worker._replace(sent=put(worker.sent, at, worker.sent[at] + 1))

    def is_done(self, worker: Worker) -> bool:
        """Whether it says that it has all results by the mappings before its newest."""
        return self.has_all(
            worker, worker.sent if self.bug == "done when all is sent" else worker.got
        )

    def has_all(self, worker: Worker, got: tuple[int, ...]) -> bool:
        return all(
            worker.firsts[at] + got[at] >= worker.firsts[at + 1]
            for at in range(len(worker.uses) - 1)
        )

    def finished(self, worker: Worker) -> bool:
        return (
            self.has_all(worker, worker.got)
            and worker.firsts[-1] + worker.got[-1] > self.operations
        )

    def next_unsent(self, worker: Worker) -> int:
        """The first operation from which on it has sent nothing."""
        sent = max(first + sent for first, sent in zip(worker.firsts, worker.sent, strict=True))
        return max(1, sent - 1) if self.bug == "S is the last that was sent" else sent

    # The switch.

    def epoch(self, mapping: int) -> int:
        return 1 if self.bug == "all mappings have one epoch" else 2 * mapping + 1

    def arrive(self, state: State, rank: int, mapping: int, chunk: int) -> State:
        if mapping not in state.entries:
            return state
        place = self.places[mapping] + chunk % 2
        values = [0] * self.operations * self.workers
        values[(self.order(state.workers[rank], mapping, chunk) - 1) * self.workers + rank] = 1
        owner, bitmap, sums = state.slots[place]
        slot = Slot(owner, bitmap, values=sums)
        tag = Tag(self.epoch(mapping), chunk)
        full = (1 << self.workers) - 1
        outcome = slot.contribute(Contribution(tag, 1 << rank, values=tuple(values)), full)
        cell = (slot.owner, slot.bitmap, slot.values)
        state = state._replace(slots=put(state.slots, place, cell))
        if outcome in (Outcome.RESULT, Outcome.REPLAY):
            self.judge(state, mapping, chunk, slot.values)
            state = state._replace(results=state.results | {(mapping, chunk)})
        return state

    def judge(self, state: State, mapping: int, chunk: int, values: tuple[int, ...]) -> None:
        """Each worker's part of one operation, once: the one that each takes it for."""
        for worker in state.workers:
            if mapping in worker.uses:
                order = self.order(worker, mapping, chunk)
                wanted = [0] * len(values)
                wanted[(order - 1) * self.workers : order * self.workers] = [1] * self.workers
                if list(values) != wanted:
                    raise Violation(f"the result of operation {order} by {mapping} is {values}")

    def accept(self, worker: Worker, mapping: int, chunk: int) -> Worker:
        if mapping not in worker.uses:
            return worker
        at = worker.uses.index(mapping)
        if worker.got[at] != chunk or worker.sent[at] == chunk:
            return worker
        return worker._replace(got=put(worker.got, at, chunk + 1))

    def given_away(self, state: State) -> State:
        """Another job has used whatever is no mapping's for the controller."""
        mappings = {state.has}
        if state.change is not None and state.change.stage is not Stage.OPENED:
            mappings.add(state.other)
        mine = {self.places[it] + version for it in mappings for version in (0, 1)}
        foreign = (Tag(2 * state.newest + 2, 0), 0, (0,) * self.operations * self.workers)
        slots = tuple(cell if place in mine else foreign for place, cell in enumerate(state.slots))
        return state._replace(slots=slots)

    # The controller: what is stored, and what is not, around the shipped table of stages.

    def load(self, state: State) -> Change | None:
        if state.change is None:
            return None
        stage, first, done, asked, told, seen, is_in_place = state.change
        change = Change(_ANY, "", is_in_place, stage, first)
        change.done, change.asked = set(done), set(asked)
        change.told, change.seen = set(told), set(seen)
        return change

    def kept(self, state: State, change: Change) -> State:
        """With the change as it is now, and the next step where nobody is waited for."""
        step = change.next_step(range(self.workers))
        if self.bug == "the former mapping goes when one is done" and change.done:
            step = Step.DONE if change.stage is Stage.DECIDED else step
        if step is not None:
            change.on(step)
        if step is Step.DONE:
            state = state._replace(has=state.other, other=state.has, first=change.first_operation)
        if change.stage is Stage.OVER:
            return state._replace(change=None, other=state.has)
        kept = Kept(
            change.stage,
            change.first_operation,
            frozenset(change.done),
            frozenset(change.asked),
            frozenset(change.told),
            frozenset(change.seen),
            change.in_place,
        )
        return state._replace(change=kept)

    def own_steps(self, state: State) -> Iterator[tuple[str, State]]:
        """What the controller does by itself, but for beginning, calling off and dying."""
        change = self.load(state)
        if change is None:
            return
        if change.stage is Stage.INSTALLING:
            change.on(Step.INSTALLED)
            installed = state._replace(entries=state.entries | {state.other})
            yield "the switch has both mappings", self.kept(installed, change)
        elif change.stage in (Stage.OFF, Stage.CLEARING):
            is_opened = change.in_place and change.stage is Stage.CLEARING
            change.on(Step.OPENED if is_opened else Step.REMOVED)
            removed = state._replace(entries=state.entries - {state.other})
            yield "the other mapping is off the switch", self.kept(removed, change)

    def whims(self, state: State) -> Iterator[tuple[str, State]]:
        """What it does, or what happens to it, for reasons of their own."""
        change = self.load(state)
        if change is None or state.change is None:
            if state.newest + 1 < len(self.places):
                new = state.newest + 1
                is_shared = self.places[new] == self.places[state.has]
                is_in_place = is_shared and self.bug != "slots are shared without a barrier"
                kept = Kept(Stage.INSTALLING, is_in_place=is_in_place)
                begun = state._replace(newest=new, other=new, change=kept)
                yield f"change {new} begins", begun
            return
        if self.restarts:
            yield "another controller", state._replace(change=state.change.restarted())
        if change.is_undecided and state.called_off < self.calls_off:
            change.on(Step.CALLED_OFF)
            off = state._replace(called_off=state.called_off + 1)
            yield "the change is called off", self.kept(off, change)

    # What workers and the controller say to each other: calls of Remap.

    def call(self, state: State, rank: int, *, is_answered: bool) -> State | None:
        """As a heartbeat or an event has it; None: the worker has nothing to ask."""
        change, worker = self.load(state), state.workers[rank]
        is_news = change is not None and change.is_news_for(rank)
        if not is_news and not worker.knows:
            return None
        is_cut = worker.knows == worker.uses[-1]
        is_done = is_cut and self.is_done(worker)
        about = 0 if not is_news and is_done and worker.may_send else worker.knows
        if change is not None and change.is_told:
            change.ask(rank, range(self.workers))
            if about == state.newest:
                if worker.reserved and change.stage is Stage.ASKED:
                    change.decide("j", worker.reserved)
                if is_done:
                    change.finish("j", rank)
            state = self.kept(state, change)
        answer: Answered | None = None
        change = self.load(state)
        if change is not None:
            terms = change.terms(rank, range(self.workers), knows=about == state.newest)
            if self.bug == "told is heard":
                change.seen |= change.told
            if terms is not None:
                answer = (state.newest, terms.first_operation, terms.waits)
            state = self.kept(state, change)
        if answer is None and about and about == state.has:
            answer = (state.has, state.first, False)
        if not is_answered:
            return state
        return self.with_worker(state, rank, self.heard(worker, rank, answer))

    def heard(self, worker: Worker, rank: int, answer: Answered | None) -> Worker:
        """What the worker makes of the answer."""
        if answer is None or (worker.knows and answer[0] != worker.knows):
            return worker._replace(knows=0, reserved=0)
        mapping, first, waits = answer
        worker = worker._replace(knows=mapping)
        if not first:
            if rank == 0 and not worker.reserved:
                ahead = self.slack[mapping % len(self.slack)]
                reserved = min(self.next_unsent(worker) + ahead, self.operations + 1)
                worker = worker._replace(reserved=reserved)
            return worker
        if mapping not in worker.uses:
            if self.bug == "each goes over by itself":
                first = self.next_unsent(worker)
            worker = Worker(
                (*worker.uses, mapping),
                (*worker.firsts, first),
                (*worker.sent, 0),
                (*worker.got, 0),
                mapping,
                not waits,
            )
        return worker._replace(may_send=worker.may_send or not waits, reserved=0)

    def with_worker(self, state: State, rank: int, worker: Worker) -> State:
        return state._replace(workers=put(state.workers, rank, worker))

    # The search.

    def moves(self, state: State) -> Iterator[tuple[str, State]]:
        for rank, worker in enumerate(state.workers):
            for at in self.sendable(worker):
                sent = self.with_worker(state, rank, self.send(worker, at))
                yield f"rank {rank} sends chunk {worker.sent[at]} by {worker.uses[at]}", sent
            for at, mapping in enumerate(worker.uses):
                for chunk in range(worker.sent[at]):
                    after = self.arrive(state, rank, mapping, chunk)
                    yield f"rank {rank}'s chunk {chunk} by {mapping} arrives", after
            for mapping, chunk in state.results:
                got = self.with_worker(state, rank, self.accept(worker, mapping, chunk))
                yield f"rank {rank} gets result {chunk} by {mapping}", got
            for is_answered in (True, False):
                called = self.call(state, rank, is_answered=is_answered)
                if called is not None:
                    lost = "" if is_answered else ", and the answer is lost"
                    yield f"rank {rank} calls{lost}", called
        yield from self.own_steps(state)
        yield from self.whims(state)

    def canonical(self, state: State) -> State:
        """Without results that nobody takes any more, and others' slots as if they were in use."""
        wanted = frozenset(
            (mapping, chunk)
            for mapping, chunk in state.results
            if any(
                mapping not in worker.uses or worker.got[worker.uses.index(mapping)] <= chunk
                for worker in state.workers
            )
        )
        return self.given_away(state._replace(results=wanted))

    def check(self, state: State) -> None:
        """With all that is in flight lost, and nothing lost any more, all ends well."""
        self._progress.check(state._replace(results=frozenset()))

    @cached_property
    def _progress(self) -> Progress[State]:
        return Progress(
            self._gone_on,
            has_ended=lambda state: (
                state.change is None
                and all(self.finished(it) and not it.knows for it in state.workers)
            ),
            tell=lambda state: (state.change, state.workers),
        )

    def _gone_on(self, state: State) -> State:
        state = next((after for _, after in self.own_steps(state)), state)
        for rank in range(self.workers):
            called = self.call(state, rank, is_answered=True)
            state = state if called is None else called
            for at in list(self.sendable(state.workers[rank])):
                state = self.with_worker(state, rank, self.send(state.workers[rank], at))
        state = self.given_away(state)
        for rank, worker in enumerate(state.workers):
            for at, mapping in enumerate(worker.uses):
                if worker.sent[at] > worker.got[at]:
                    state = self.arrive(state, rank, mapping, worker.got[at])
        for mapping, chunk in state.results:
            for rank in range(self.workers):
                after = self.accept(state.workers[rank], mapping, chunk)
                state = self.with_worker(state, rank, after)
        return state._replace(results=frozenset())
