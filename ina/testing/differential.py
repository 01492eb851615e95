"""Differential testing: the same packets to two devices, which must do the same.

The first device is the reference: its answers steer the traffic (workers go on when they have a
result), so it should be a fast one. A run has *episodes*; each begins at power-on and depends on
the seed and its number alone, so that a difference can be found again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from ina import modes
from ina.protocol.spec import VALUE_BYTES
from ina.tables.values import AnyItem, Count, CounterRef
from ina.testing.case import (
    Arrival,
    Case,
    ItemChange,
    Step,
    all_counters,
    powered_on,
    run_case,
    shown,
)
from ina.testing.device import Device, by_port, growth_of
from ina.testing.errors import DeviceError
from ina.testing.frames import PortFrame
from ina.testing.ordinary import ordinary_frame, ordinary_state
from ina.testing.state import counters_of, job_state, own_address
from ina.testing.traffic import Traffic, make_jobs
from ina.testing.wrapping import WRAPPINGS, Wrapping

SIZES = (1, 2, 3, 8, 32)
"""Workers of the jobs of an episode."""
SLOTS = (2, 4, 16, 4, 2)
EPISODE_PACKETS = 5000
_BLOCK = 250  # packets between two comparisons
_READMIT_EVERY = 1500
_ORDINARY_FRACTION = 0.05


@dataclass
class Tally:
    """What has been compared so far."""

    packets: int = 0
    left: int = 0
    """Packets that left the devices."""
    counters: int = 0
    not_carried: int = 0
    """Packets that were made, and that one of the devices has no port or no room for."""


@dataclass(frozen=True)
class Finding:
    """A difference: the case as the reference has it, and what the other device did."""

    case: Case
    differences: tuple[str, ...]


@dataclass
class Comparison:
    """Two devices on the same traffic."""

    reference: Device
    device: Device
    values: int
    seed: int = 1
    tally: Tally = field(default_factory=Tally)
    _wrapping: Wrapping = field(init=False)
    """How the traffic, which is made of UDP's frames, is said for the devices' program."""

    def run(self, packets: int, advance: Callable[[int], None] = lambda _: None) -> Finding | None:
        """Compares until a difference, or until ``packets`` have gone to both devices.

        Raises DeviceError: its packets do not grow as those of its mode may.
        """
        if modes.of(self.device.mode).fills_packets and not self._grows:
            room = growth_of(VALUE_BYTES * self.values).value
            raise DeviceError(
                f"{self.reference.name} and {self.device.name}: mode {self.device.mode!r} with"
                f" {self.values} values needs {room}"
            )
        episode = 0
        while self.tally.packets < packets:
            count = min(EPISODE_PACKETS, packets - self.tally.packets)
            finding = self.episode(episode, count, advance)
            if finding is not None:
                return finding
            episode += 1
        return None

    @property
    def _grows(self) -> bool:
        needed = growth_of(VALUE_BYTES * self.values)
        return all(needed in each.abilities for each in (self.reference, self.device))

    def episode(
        self, number: int, packets: int, advance: Callable[[int], None] = lambda _: None
    ) -> Finding | None:
        """Compares one episode, counters at its end."""
        rng = random.Random(f"{self.seed}/{number}")
        jobs = make_jobs(rng, list(SIZES), list(SLOTS), self.device.mode)
        traffic = Traffic(rng, self.values, jobs, grows=self._grows)
        of_jobs = [item for job in jobs for item in job_state(job)]
        self._wrapping = WRAPPINGS[modes.of(self.device.mode).framing].of(of_jobs)
        said = map(self._wrapping.item, (own_address(), *of_jobs))
        state = (*ordinary_state(), *said, *self._wrapping.rows)
        for each in (self.reference, self.device):
            each.reset(self.values)
            each.insert(state)
        case = Case(
            f"difference/seed-{self.seed}-episode-{number}",
            f"Random traffic on which {self.device.name} differed from {self.reference.name}.",
            self.values,
            state,
            (),
            mode=self.device.mode,
        )
        steps: list[Step] = []
        next_restart = _READMIT_EVERY
        for start in range(0, packets, _BLOCK):
            count = min(_BLOCK, packets - start)
            block = [self._arrival(traffic) for _ in range(count)]
            steps += block
            wrong = disagreement(block, self.device.process([(a.port, a.frame) for a in block]))
            self.tally.packets += count
            self.tally.left += sum(len(arrival.out) for arrival in block)
            advance(count)
            if wrong:
                return Finding(replace(case, steps=tuple(steps)), (wrong,))
            if start >= next_restart:
                next_restart += _READMIT_EVERY
                steps.append(self._restart(traffic))
        return self._compare_counters(replace(case, steps=tuple(steps)))

    def _arrival(self, traffic: Traffic) -> Arrival:
        """The next packet that both can carry, and what the reference makes of it."""
        while True:
            if traffic.rng.random() < _ORDINARY_FRACTION:
                port, data = ordinary_frame(traffic.rng)
            else:
                port, data = traffic.next()
                data = self._wrapping.damaged(traffic.rng, self._wrapping.arriving(data))
            if all(
                port in each.ports and len(data) in each.frame_bytes
                for each in (self.reference, self.device)
            ):
                break
            self.tally.not_carried += 1
        out = self.reference.process([(port, data)])
        traffic.observe([(left_by, self._wrapping.opened(frame)) for left_by, frame in out])
        return Arrival(port, data, tuple(out))

    def _restart(self, traffic: Traffic) -> ItemChange:
        """One job starts over in a newer epoch."""
        before = dict(traffic.jobs)
        after = traffic.readmit()
        former = before[after.number].job
        change = ItemChange(
            tuple(map(self._wrapping.item, job_state(former)[::-1])),
            tuple(map(self._wrapping.item, job_state(after))),
        )
        for each in (self.reference, self.device):
            change.make(each)
        return change

    def _compare_counters(self, case: Case) -> Finding | None:
        counts = read_counters(case, self.reference)
        self.tally.counters += len(counts)
        found = dict(zip(counts, self.device.counts(list(counts)), strict=True))
        if found == counts:
            return None
        wrong = [
            f"{ref}: {counts[ref]} and {found[ref]}" for ref in counts if counts[ref] != found[ref]
        ]
        return Finding(replace(case, counts=counts), tuple(wrong))


def disagreement(block: Sequence[Arrival], sent: Sequence[PortFrame]) -> str:
    """What leaves each port, in the order of arrival; copies of one frame in any order."""
    left = {port: list(frames) for port, frames in by_port(sent).items()}
    for index, arrival in enumerate(block):
        for port, wanted in by_port(arrival.out).items():
            queue = left.get(port, [])
            got, left[port] = queue[: len(wanted)], queue[len(wanted) :]
            if sorted(got) != sorted(wanted):
                where = f"behind packet {index} of the block, port {port}"
                return f"{where}: expected {shown(wanted)}, got {shown(got)}"
    extra = [
        f"port {port}: not expected {shown(frames)}" for port, frames in left.items() if frames
    ]
    return "; ".join(extra)


def read_counters(case: Case, device: Device) -> dict[CounterRef, Count]:
    """Every counter of the case's jobs and of the entries that are there at its end."""
    items: list[AnyItem] = list(case.state)
    for step in case.steps:
        if isinstance(step, ItemChange):
            items = [item for item in items if item not in step.delete]
            items += step.insert
    refs = [*all_counters(items, device.mode), *counters_of(items)]
    return dict(zip(refs, device.counts(refs), strict=True))


def as_reference_has_it(case: Case, reference: Device) -> Case:
    """The same arrivals and changes, with what the reference does as what is expected."""
    reference.reset(case.values)
    reference.insert(powered_on(case))
    steps: list[Step] = []
    for step in case.steps:
        if isinstance(step, ItemChange):
            step.make(reference)
            steps.append(step)
        else:
            out = reference.process([(step.port, step.frame)])
            steps.append(step.gives(*out))
    told = replace(case, steps=tuple(steps))
    return replace(told, counts=read_counters(told, reference))


def still_differs(case: Case, reference: Device, device: Device) -> Finding | None:
    """Runs a case on both; None where they agree."""
    told = as_reference_has_it(case, reference)
    verdict = run_case(told, device)
    return Finding(told, verdict.differences) if verdict.differences else None
