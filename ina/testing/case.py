"""A conformance case: state, packets in, packets out, counters; and how it is run on a device."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from ina import modes
from ina.p4 import names
from ina.protocol.codec import decode
from ina.protocol.errors import PacketError
from ina.tables.values import AnyItem, Counter, CounterRef, Entry, Group
from ina.testing.device import Ability, Device, by_port, growth_of
from ina.testing.errors import DeviceError
from ina.testing.frames import PortFrame, is_udp, parse
from ina.testing.state import job_counters, own_address

_OTHER_HEADERS_BYTES = 16
"""More than there is before a frame for the controller; fewer than of values."""


@dataclass(frozen=True)
class Arrival:
    """A frame comes in by a port, and exactly ``out`` leaves because of it.

    The copies of one frame may leave a port in any order: P4Runtime promises none.
    """

    port: int
    frame: bytes
    out: tuple[PortFrame, ...] = ()

    def gives(self, *out: PortFrame) -> Arrival:
        """The same arrival, and what must leave."""
        return Arrival(self.port, self.frame, out)

    @property
    def growth_bytes(self) -> int:
        """How much longer what leaves is, if it has values and what has come had none; else 0."""
        most = max((len(data) - len(self.frame) for _, data in self.out), default=0)
        return most if most > _OTHER_HEADERS_BYTES else 0


@dataclass(frozen=True)
class ItemChange:
    """The control plane takes items off, then writes others, then gives groups other copies."""

    delete: tuple[AnyItem, ...] = ()
    insert: tuple[AnyItem, ...] = ()
    modify: tuple[Group, ...] = ()

    def make(self, device: Device) -> None:
        """Makes the change."""
        device.delete(self.delete)
        device.insert(self.insert)
        device.modify(self.modify)


Step: TypeAlias = Arrival | ItemChange


@dataclass(frozen=True)
class Case:
    """What a device must do.

    ``counts`` names the counters that have moved at the end: packets, or packets and bytes. All
    other counters of the jobs in ``state``, and all other drop counters, must be zero.
    """

    name: str
    about: str
    values: int
    state: tuple[AnyItem, ...]
    steps: tuple[Step, ...]
    counts: Mapping[CounterRef, int | tuple[int, int]] = field(default_factory=dict)
    needs: frozenset[Ability] = frozenset()
    mode: str = names.DEFAULT_MODE
    """Of the program that it is about. One of mode shared has all of pool's cases."""

    def lacks(self, device: Device) -> str:
        """Why the case cannot run on a device; empty: it can."""
        if self.mode not in (names.DEFAULT_MODE, device.mode):
            return f"{device.name} runs the program of mode {device.mode}"
        arrivals = [step for step in self.steps if isinstance(step, Arrival)]
        growth_bytes = max((it.growth_bytes for it in arrivals), default=0)
        needs = self.needs | ({growth_of(growth_bytes)} if growth_bytes else set())
        for ability in sorted(needs - device.abilities, key=lambda need: need.name):
            return f"{device.name} does not have {ability.value}"
        for step in self.steps:
            if not isinstance(step, Arrival):
                continue
            for port in (step.port, *(port for port, _ in step.out)):
                if port != names.CPU_PORT and port not in device.ports:
                    return f"{device.name} has no port {port}"
            if step.port != names.CPU_PORT and len(step.frame) not in device.frame_bytes:
                return f"{device.name} carries no frame of {len(step.frame)} bytes"
        return ""


@dataclass(frozen=True)
class Verdict:
    """What came of a case: the differences, or why it was not run."""

    case: Case
    differences: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def ok(self) -> bool:
        """It ran, and all was as it must be."""
        return not self.differences and not self.skipped


def run_case(case: Case, device: Device) -> Verdict:
    """Runs a case on a device, from power-on."""
    if why := case.lacks(device):
        return Verdict(case, skipped=why)
    try:
        return Verdict(case, tuple(_differences(case, device)))
    except DeviceError as error:
        return Verdict(case, (str(error),))


def _differences(case: Case, device: Device) -> Iterable[str]:
    device.reset(case.values)
    device.insert(powered_on(case))
    for number, step in enumerate(case.steps):
        if isinstance(step, ItemChange):
            step.make(device)
            continue
        sent = by_port(device.process([(step.port, step.frame)]))
        wanted = by_port(step.out)
        for port in sorted(wanted.keys() | sent.keys()):
            missing, extra = difference(wanted.get(port, []), sent.get(port, []))
            if missing or extra:
                where = f"step {number}, port {port}"
                yield f"{where}: missing {shown(missing)}; not expected {shown(extra)}"
    yield from _wrong_counters(case, device)


def powered_on(case: Case) -> tuple[AnyItem, ...]:
    """What there is before the first step: the case's state, and an address of the switch's own."""
    own = any(isinstance(item, Entry) and item.table == names.OWN_ADDRESSES for item in case.state)
    return case.state if own else (own_address(), *case.state)


def _wrong_counters(case: Case, device: Device) -> Iterable[str]:
    refs = list(dict.fromkeys([*case.counts, *all_counters(_all_items(case), device.mode)]))
    for ref, found in zip(refs, device.counts(refs), strict=True):
        wanted = case.counts.get(ref, 0)
        if found != wanted if isinstance(wanted, tuple) else found[0] != wanted:
            yield f"counter {shown_counter(ref)}: expected {wanted}, got {found}"


def all_counters(items: Iterable[AnyItem], mode: str) -> list[CounterRef]:
    """The drop counters, and a program's per-job counters of every job that the items admit."""
    refs: list[CounterRef] = [Counter(names.DROPS, reason) for reason in drop_reasons(mode)]
    for item in items:
        if isinstance(item, Entry) and item.table == names.JOBS:
            refs += job_counters(dict(item.params)["job_index"], mode)
    return list(dict.fromkeys(refs))


def drop_reasons(mode: str) -> tuple[int, ...]:
    """Indices of the drop counter of a mode's program."""
    return tuple(modes.of(mode).drop_reasons)


def _all_items(case: Case) -> list[AnyItem]:
    changes = [step for step in case.steps if isinstance(step, ItemChange)]
    return [*case.state, *(item for change in changes for item in change.insert)]


def difference(wanted: list[bytes], sent: list[bytes]) -> tuple[list[bytes], list[bytes]]:
    """What is missing, and what there is too much; in whatever order they came."""
    extra = list(sent)
    missing = []
    for frame in wanted:
        if frame in extra:
            extra.remove(frame)
        else:
            missing.append(frame)
    return missing, extra


def shown(frames: Sequence[bytes]) -> str:
    """Frames for people: what they are, and how they begin."""
    return "; ".join(map(_shown, frames)) or "nothing"


def _shown(frame: bytes) -> str:
    if is_udp(frame):
        payload = parse(frame).payload
        with contextlib.suppress(PacketError):
            header, values = decode(payload)
            fields = ", ".join(f"{name} {getattr(header, name)}" for name in _TOLD)
            return f"{header.kind.name} ({fields}, values {values[:4].tolist()}...)"
    return f"{len(frame)} bytes {frame[:80].hex()}"


_TOLD = (
    "job",
    "worker",
    "slot",
    "seq",
    "flags",
    "contributors",
    "exponent",
    "next_exponent",
    "digest",
    "check",
)


def shown_counter(ref: CounterRef) -> str:
    """A counter's name and where in it."""
    if isinstance(ref, Counter):
        return f"{ref.name}[{ref.index}]"
    return f"{ref.table}[{', '.join(f'{name}={value}' for name, value in ref.match)}]"
