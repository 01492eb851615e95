"""Other people's programs on device xdp: what loads, and does what the soft switch does."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ina.switch.errors import InvalidProgramError, UnsupportedProgramError
from ina.switch.ir import load_program
from ina.switch.pipeline import Pipeline
from ina.switch.targets import xdp_target
from tests.switch.quick import quick
from tests.switch.samples import stf
from tests.switch.samples.entries import with_random_entries
from tests.switch.samples.packets import Packet, packets

COMPILER_REFUSES, SOFT_REFUSES, LOADS = "p4c refuses", "the soft switch refuses", "loads"
PASSES, PADDED, NOT_PADDED, FAILS = "passes", "padded", "not padded", "fails"
LEAST_BYTES = 14
"""Of a frame on an Ethernet interface."""
PAD_BYTES = 60
PACKETS = 100


@dataclass(frozen=True)
class Verdict:
    """Of one sample."""

    name: str
    loads: str
    """A constant above, or the construct that device xdp refuses."""
    is_timed: bool = False
    """Whether what leaves depends on the time: it is not compared."""
    difference: str = ""
    """The first packet of which the two make something else."""
    script: str = ""
    """Of its STF file: a constant above; empty: it has none, or the soft switch does not pass."""
    told: str = ""
    """What is wrong with it."""


def judge(sample: Path, text: str, cache: Path, seed: int) -> Verdict:
    """``text``: what p4c made of it; empty: it refused."""
    name = sample.stem
    if not text:
        return Verdict(name, COMPILER_REFUSES)
    random_ = random.Random(f"{seed} {name}")
    try:
        program = load_program(text)
        filled = with_random_entries(text, program, random_)
        sent = [
            (port, padded(data)) for port, data in packets(program, _stf(sample), PACKETS, random_)
        ]
        with quick([filled]) as [built]:
            wanted = [built.general.process(port, data) for port, data in sent]
    except (InvalidProgramError, UnsupportedProgramError):
        return Verdict(name, SOFT_REFUSES)
    script, told = _script(sample, text, cache)
    try:
        found, again = (_process(filled, cache, sent) for _ in range(2))
    except UnsupportedProgramError as error:
        return Verdict(name, construct(error), script=script, told=told)
    difference = next(
        (
            f"port {port}: {data.hex()}: {there}, soft {here}"
            for (port, data), here, there in zip(sent, wanted, found, strict=True)
            if _seen(here) != there
        ),
        "",
    )
    is_timed = found != again
    return Verdict(name, LOADS, is_timed, "" if is_timed else difference, script, told)


def padded(data: bytes) -> bytes:
    """So long that the kernel takes it, and what is left of it."""
    return data + bytes(max(PAD_BYTES - len(data), 0))


def construct(error: UnsupportedProgramError) -> str:
    """Without what is this program's own."""
    text = error.construct.partition(", on device xdp")[0]
    text = re.sub(r"^\S+ in egress", "a field in egress", text)
    text = re.sub(r"^\d+ bytes of metadata.*", "more metadata than fits before a frame", text)
    text = re.sub(r"^(a [\w' ]*?) between the uses of register .*", r"\1 between uses", text)
    return re.sub(r" \(.*", "", text)


def _seen(left: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    return [(port, data) for port, data in left if len(data) >= LEAST_BYTES]


def _process(text: str, cache: Path, sent: list[Packet]) -> list[list[tuple[int, bytes]]]:
    with xdp_target(cache).load(text) as pipeline:
        return [pipeline.process(port, data) for port, data in sent]


def _stf(sample: Path) -> Path:
    return sample.with_suffix(".stf")


def _script(sample: Path, text: str, cache: Path) -> tuple[str, str]:
    """Whether device xdp passes it. Where frames are shorter than the kernel's, all are made
    longer; if the soft switch does not pass that other test, it has to fail alike."""
    if not _stf(sample).exists():
        return "", ""
    script = stf.read(_stf(sample))

    def wrong(pipeline: Pipeline, what: stf.Script) -> list[str]:
        return stf.differences(what, pipeline)

    with quick([text]) as [built]:
        if wrong(built.general, script):
            return "", ""
    is_short = script.shortest_bytes < LEAST_BYTES
    longer = script.padded(PAD_BYTES) if is_short else script
    with quick([text]) as [built]:
        alike = wrong(built.general, longer)
    try:
        with xdp_target(cache).load(text) as pipeline:
            found = wrong(pipeline, longer)
    except UnsupportedProgramError:
        return FAILS, "refused"
    if found != alike:
        return FAILS, found[0] if found else "it should not pass"
    if found:
        return NOT_PADDED, ""
    return (PADDED if is_short else PASSES), ""


def table(verdicts: Iterable[Verdict]) -> list[str]:
    """Rows of docs/xdp.md: what was found, how often."""
    found = list(verdicts)
    compiled = [it for it in found if it.loads != COMPILER_REFUSES]
    taken = [it for it in compiled if it.loads != SOFT_REFUSES]
    loaded = [it for it in taken if it.loads == LOADS]
    scripts = Counter(it.script for it in taken if it.script)
    refused = Counter(it.loads for it in taken if it.loads != LOADS)
    rows = [
        ("p4c's programs for v1model", len(found)),
        ("p4c compiles", len(compiled)),
        ("the soft switch takes", len(taken)),
        ("**device `xdp` takes, and the verifier lets pass**", len(loaded)),
        ("of these depend on the time", sum(it.is_timed for it in loaded)),
        ("make of random packets what the soft switch makes", sum(_is_same(it) for it in loaded)),
        ("STF files that the soft switch passes", sum(scripts.values())),
        ("**device `xdp` passes**", scripts[PASSES]),
        ("… passes with frames of 60 bytes more, since theirs have less than 14", scripts[PADDED]),
        ("… fails as the soft switch does with frames that are longer", scripts[NOT_PADDED]),
        ("… refuses", sum(it.told == "refused" for it in taken)),
        *((f"refused: {what}", count) for what, count in sorted(refused.items(), key=_most)),
    ]
    return [f"| {what} | {count} |" for what, count in rows]


def _is_same(verdict: Verdict) -> bool:
    return not verdict.is_timed and not verdict.difference


def _most(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]
