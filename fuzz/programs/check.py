"""One program on all paths: what each lets out and leaves in memory, beside what is right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fuzz.programs.batch import BatchError, Pipelines, compiled, emitted
from fuzz.programs.device import Device, cut
from fuzz.programs.interpret import Interpreter, Memory, Sent
from fuzz.programs.lower import to_json
from fuzz.programs.model import Packet, Trial
from ina.switch.errors import UnsupportedProgramError

MAIN, GENERAL, SPLIT = "main path", "general path", "main path, frames in two parts"


@dataclass(frozen=True)
class Expected:
    """What the interpreter says; packets whose way P4 does not define are left out."""

    packets: tuple[Packet, ...]
    sent: tuple[Sent, ...]
    memory: Memory


@dataclass(frozen=True)
class Finding:
    """A difference, or a program that cannot be run."""

    trial: Trial
    path: str
    """Which path is wrong; "compiler" where there is no program to run."""
    what: str
    """In a line: the packet or cell, what is right, what came."""


def expected(trial: Trial, text: str) -> Expected:
    """Of a program in JSON."""
    groups = {group.number: group.copies for group in trial.program.groups}
    interpreter = Interpreter(text, groups)
    packets, sent = [], []
    for port, data in trial.packets:
        out = interpreter.process(port, data)
        if out is not None:
            packets.append((port, data))
            sent.append(out)
    return Expected(tuple(packets), tuple(sent), cut(interpreter.memory))


def check_all(trials: Sequence[Trial], flags: Sequence[str] | None = None) -> list[Finding | None]:
    """By trial, the first difference; all are compiled as one."""
    texts = [to_json(trial.program) for trial in trials]
    sources, findings = [], {}
    for at, (trial, text) in enumerate(zip(trials, texts, strict=True)):
        try:
            sources.append((at, emitted(text)))
        except UnsupportedProgramError as error:
            findings[at] = Finding(trial, "compiler", str(error))
        except Exception as error:
            findings[at] = Finding(trial, "compiler", f"{type(error).__name__}: {error}")
    try:
        with compiled(
            [source for _, source in sources], **({"flags": flags} if flags else {})
        ) as all_:
            for (at, _), pipelines in zip(sources, all_, strict=True):
                found = _compare(trials[at], texts[at], pipelines)
                if found is not None:
                    findings[at] = found
    except BatchError as error:
        if len(trials) == 1:
            return [Finding(trials[0], "compiler", str(error))]
        middle = len(trials) // 2
        return check_all(trials[:middle], flags) + check_all(trials[middle:], flags)
    return [findings.get(at) for at in range(len(trials))]


def check(trial: Trial) -> Finding | None:
    """Of one."""
    return check_all([trial])[0]


def _compare(trial: Trial, text: str, pipelines: Pipelines) -> Finding | None:
    right = expected(trial, text)
    ways = [(GENERAL, pipelines.general, 0), (MAIN, pipelines.main, 0)]
    if pipelines.split_bytes:
        ways.append((SPLIT, pipelines.main, pipelines.split_bytes))
    for path, table, split in ways:
        groups = trial.program.groups
        with Device.power_on(table, pipelines.program, groups, split) as device:
            for what in _differences(device, right):
                return Finding(trial, path, what)
    return None


def _differences(device: Device, right: Expected) -> Iterator[str]:
    for number, (packet, wanted) in enumerate(zip(right.packets, right.sent, strict=True)):
        sent = device.process(*packet)
        if sent != wanted:
            port, data = packet
            yield (
                f"packet {number} (port {port}, {data.hex()}): "
                f"right is {_show(wanted)}, it sent {_show(sent)}"
            )
    memory = device.memory()
    for kind in ("registers", "counters", "direct"):
        wanted_cells, cells = getattr(right.memory, kind), getattr(memory, kind)
        for name in wanted_cells:
            if wanted_cells[name] != cells[name]:
                yield f"{kind} {name}: right is {wanted_cells[name]}, it has {cells[name]}"


def _show(sent: Iterable[tuple[int, bytes]]) -> str:
    return ", ".join(f"port {port} {data.hex() or 'empty'}" for port, data in sent) or "nothing"
