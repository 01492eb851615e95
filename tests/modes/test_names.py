"""Which files name a single mode: those that are about it, and no other.

Whoever else has to know in what modes differ asks the mode's object (``ina/modes``).
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ina.p4 import compiled, names
from ina.p4.builds import builds_of
from ina.p4.info import read_p4info
from tests.layers import PACKAGE
from tests.layers import modules as all_modules
from tests.lines import ROOT

ABOUT_ONE = {
    "ina/bench/pipeline.py": "measures both programs' packets, and writes their rows by hand",
    "ina/bench/shared_star.py": "a star whose jobs share slots",
    "ina/bench/sharing.py": "measures both modes beside each other",
    "ina/bench/sharing_worker.py": "is a worker of theirs",
    "ina/bench/stopped_worker.py": "of a job that shares slots",
    "ina/sim/draw_nics.py": "draws jobs of NICs in place of jobs that have slots alone",
    "ina/sim/draw_shared.py": "draws jobs that share slots",
    "ina/sim/draw_streams.py": "draws jobs of streams in place of jobs that have slots alone",
    "ina/sim/windows/slots.py": "windows of jobs that share slots",
    "ina/testing/cases/roce.py": "conformance cases of what RoCEv2 has around a packet",
    "ina/testing/cases/ring.py": "a ring's rows and frames, for the cases of mode transparent",
    "ina/testing/cases/sends.py": "conformance cases of what both modes have around a packet",
    "ina/testing/cases/transparent.py": "conformance cases of rings of workers",
    "ina/testing/framing.py": "the reference's packets of each mode, and what passes beside them",
    "ina/testing/wrapping.py": "the cases said of each mode's packets",
    "ina/testing/cases/claims.py": "conformance cases of claiming",
    "ina/testing/cases/stream.py": "conformance cases of packets whose last word is no value",
    "ina/testing/model_device.py": "the reference of all programs: what each outcome counts",
    "ina/testing/model_tables.py": "the reference of all programs: what their rows mean",
    "ina/testing/state.py": "rows of the cases, which the modes' own are compared with",
}
"""With what they do. The P4 programs, and what finds them, are ``ina/p4``'s."""

OWNERS = ("modes", "p4")


@functools.cache
def of_one_program() -> frozenset[str]:
    """What ``ina.p4.names`` calls modes, and what is not in all modes' programs."""
    of_each = [said_in(mode) for mode in names.MODES]
    not_of_all = frozenset.union(*of_each) - frozenset.intersection(*of_each)
    constants = {key: value for key, value in vars(names).items() if isinstance(value, str)}
    return frozenset(
        key for key, value in constants.items() if value in not_of_all or value in names.MODES
    ) - {"DEFAULT_MODE"}


def said_in(mode: str) -> frozenset[str]:
    info = read_p4info(compiled(min(builds_of(mode)), mode).p4info)
    counters = {it.name for it in info.counters}
    actions = {it.name for it in info.actions}
    return frozenset(counters | actions | {it.name for it in info.tables})


@functools.cache
def suspect() -> re.Pattern[str]:
    """What is in each file that names a mode."""
    modes = "|".join(names.MODES)
    words = "|".join(sorted(of_one_program()))
    return re.compile(rf"""["'}}]({modes})["'{{]|from ina\.modes|\b({words})\b""")


def named(source: str) -> Iterator[tuple[int, str]]:
    """Line and name of each mention of a mode, or of what is one program's alone."""
    forbidden = of_one_program()
    if not suspect().search(source):
        return
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)) if text in names.MODES:
                yield node.lineno, repr(text)
            case ast.Attribute(attr=name) if name in forbidden:
                yield node.lineno, name
            case ast.ImportFrom(module=str(module), names=of_it) if module.startswith("ina.modes"):
                for one in (*module.split("."), *(it.name for it in of_it)):
                    if one in names.MODES:
                        yield node.lineno, f"{module}: {one}"
            case ast.ImportFrom(module=str(module), names=of_it) if module.startswith("ina.p4"):
                yield from ((node.lineno, it.name) for it in of_it if it.name in forbidden)


def files() -> list[Path]:
    return [
        path
        for path in all_modules()
        if path.relative_to(PACKAGE).parts[0] not in OWNERS and "generated" not in path.parts
    ]


def test_a_mode_is_named_by_what_is_about_it_alone() -> None:
    found = {path.relative_to(ROOT).as_posix(): list(named(path.read_text())) for path in files()}
    assert {path: its for path, its in found.items() if its and path not in ABOUT_ONE} == {}
    assert sorted(path for path in ABOUT_ONE if not found[path]) == []


@pytest.mark.parametrize(
    "line",
    [
        'if job.mode == "shared":\n    pass',
        'mode = dict(pool=1)["pool"]',
        "from ina.p4 import names\nx = names.SHARED",
        "from ina.p4.names import POOL\nx = POOL",
        "from ina.p4 import names\nx = names.ADMIT_SHARED_JOB",
        "from ina.p4 import names\nx = names.OWNERS, names.JOB_FLUSHES",
        "from ina.modes.shared import Shared",
        "from ina.modes import shared",
    ],
)
def test_one_that_is_named_is_found(line: str) -> None:
    assert list(named(line))


@pytest.mark.parametrize(
    "line",
    [
        "from ina import modes\nx = modes.of(job.mode).is_sized",
        "POOL = 3\nslots = POOL * 2",
        "from ina.p4 import names\nx = names.JOBS, names.JOB_RESULTS, names.DEFAULT_MODE",
        'x = "a pool of threads", job.shared',
    ],
)
def test_nothing_else_is(line: str) -> None:
    assert list(named(line)) == []
