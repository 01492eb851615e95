"""Cases as files: JSON that anybody can read, and the frames as pcap."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ina.p4 import names
from ina.tables.values import AnyItem, Count, CounterRef, Group
from ina.testing.case import Arrival, Case, ItemChange, Step
from ina.testing.device import Ability, Device
from ina.testing.differential import Finding
from ina.testing.errors import CaseFileError
from ina.testing.frames import PortFrame

FORMAT = "ina-case-1"
_MAGIC_NS = 0xA1B23C4D
_ETHERNET = 1


class _Arrival(msgspec.Struct, tag="arrival"):
    port: int
    frame: str  # hex
    out: list[tuple[int, str]]


class _Change(msgspec.Struct, tag="change"):
    delete: list[AnyItem]
    insert: list[AnyItem]
    modify: list[Group] = []


class _Case(msgspec.Struct):
    format: str
    name: str
    about: str
    values: int
    state: list[AnyItem]
    steps: list[_Arrival | _Change]
    counts: list[tuple[CounterRef, Count]]
    needs: list[str]
    mode: str = names.DEFAULT_MODE


def save_case(case: Case, path: Path) -> None:
    """Writes a case as JSON. Counts of packets alone are not kept: bytes must be known, too."""
    plain = _Case(
        FORMAT,
        case.name,
        case.about,
        case.values,
        list(case.state),
        [_step_to_plain(step) for step in case.steps],
        [(ref, Count(*count)) for ref, count in case.counts.items() if isinstance(count, tuple)],
        sorted(need.name for need in case.needs),
        case.mode,
    )
    path.write_bytes(msgspec.json.format(msgspec.json.encode(plain)) + b"\n")


def load_case(path: Path) -> Case:
    """Reads what :func:`save_case` wrote. Raises CaseFileError, and OSError with the path."""
    try:
        plain = msgspec.json.decode(path.read_bytes(), type=_Case)
        if plain.format != FORMAT:
            raise CaseFileError(f"{path}: format {plain.format!r}, this ina reads {FORMAT!r}")
        return Case(
            plain.name,
            plain.about,
            plain.values,
            tuple(plain.state),
            tuple(_step_from_plain(step) for step in plain.steps),
            dict(plain.counts),
            frozenset(Ability[name] for name in plain.needs),
            plain.mode,
        )
    except KeyError as error:
        raise CaseFileError(f"{path}: no ability is called {error}") from None
    except CaseFileError:
        raise
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise CaseFileError(f"{path}: not a case: {error}") from None


def save_pcap(frames: Iterable[PortFrame], path: Path) -> None:
    """Writes frames as a classic pcap; the number of a frame's port stands in its microseconds."""
    head = struct.pack("<IHHiIII", _MAGIC_NS, 2, 4, 0, 0, 65535, _ETHERNET)
    records = (
        struct.pack("<IIII", second, port * 1000, len(data), len(data)) + data
        for second, (port, data) in enumerate(frames)
    )
    path.write_bytes(head + b"".join(records))


def save_finding(finding: Finding, name: str, device: Device, folder: Path) -> list[Path]:
    """Writes a difference: the case, what goes in, what must leave, what left the device.

    Returns the files: case.json, in.pcap, expected.pcap, NAME.pcap.
    """
    folder.mkdir(parents=True, exist_ok=True)
    case = finding.case
    expected = [out for step in case.steps if isinstance(step, Arrival) for out in step.out]
    label = "".join(c if c.isalnum() or c == "-" else "_" for c in name)
    files = [folder / f"{stem}.pcap" for stem in ("in", "expected", label)]
    contents = (frames_in(case), expected, sent_by(device, case))
    for path, frames in zip(files, contents, strict=True):
        save_pcap(frames, path)
    save_case(case, folder / "case.json")
    return [folder / "case.json", *files]


def sent_by(device: Device, case: Case) -> list[PortFrame]:
    """What leaves a device in a case, whatever is expected."""
    device.reset(case.values)
    device.insert(case.state)
    sent: list[PortFrame] = []
    for step in case.steps:
        if isinstance(step, ItemChange):
            step.make(device)
        else:
            sent += device.process([(step.port, step.frame)])
    return sent


def frames_in(case: Case) -> list[PortFrame]:
    """Every frame that arrives in a case."""
    return [(step.port, step.frame) for step in case.steps if isinstance(step, Arrival)]


def _step_to_plain(step: Step) -> _Arrival | _Change:
    if isinstance(step, ItemChange):
        return _Change(list(step.delete), list(step.insert), list(step.modify))
    out = [(port, data.hex()) for port, data in step.out]
    return _Arrival(step.port, step.frame.hex(), out)


def _step_from_plain(step: _Arrival | _Change) -> Step:
    if isinstance(step, _Change):
        return ItemChange(tuple(step.delete), tuple(step.insert), tuple(step.modify))
    out = tuple((port, bytes.fromhex(data)) for port, data in step.out)
    return Arrival(step.port, bytes.fromhex(step.frame), out)
