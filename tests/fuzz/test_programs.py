"""Random v1model programs: main path, general path and interpreter agree.

``python -m fuzz.programs --replay SEED`` shows the smallest part of a program that does not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from fuzz.programs import __main__ as command
from fuzz.programs.campaign import Progress, StateError, campaign
from fuzz.programs.check import GENERAL, Finding, check, check_all, expected
from fuzz.programs.digests import ALGORITHMS
from fuzz.programs.generate import generated
from fuzz.programs.lower import to_json
from fuzz.programs.minimise import minimised
from fuzz.programs.model import (
    Action,
    Apply,
    Assign,
    Call,
    Checksum,
    Compare,
    Extract,
    Field,
    Header,
    If,
    Num,
    Program,
    Ref,
    SetValid,
    State,
    Table,
    Trial,
)
from fuzz.programs.show import show

FIRST = range(100)
FURTHER = (103, 107, 115, 130, 133, 136, 137, 140, 215, 228, 236)
"""Those of the first 250 in which passes and emitter run lines that they do not in FIRST."""
LONG_PROGRAMS = 100_000
ROOT = Path(__file__).parents[2]
STATE = ROOT / "out" / "fuzz" / "programs.json"


def told(found: list[Finding]) -> list[str]:
    return [f"seed {it.trial.seed}, {it.path}: {it.what}" for it in found]


@pytest.mark.parametrize("seeds", [FIRST[:50], [*FIRST[50:], *FURTHER]], ids=["first", "further"])
def test_all_paths_do_what_is_right(seeds: Sequence[int]) -> None:
    found = check_all([generated(seed) for seed in seeds])
    assert told([it for it in found if it is not None]) == []


@pytest.mark.long
@pytest.mark.timeout(0)
def test_all_paths_do_what_is_right_in_many_programs() -> None:
    """It goes on from where it was stopped, and says where it is."""
    wrong: list[int] = []
    for progress, _ in campaign(0, LONG_PROGRAMS, os.cpu_count() or 1, STATE):
        print(f"{progress.next} programs, {len(progress.found)} differ", flush=True)
        wrong = progress.found
    assert wrong == [], "seeds, to be shown with --replay"
    STATE.unlink(missing_ok=True)


@pytest.mark.parametrize("seed", [7, 11])
def test_a_seed_is_one_program(seed: int) -> None:
    one, same, other = generated(seed), generated(seed), generated(seed + 1)
    assert one == same
    assert one != other
    assert show(one.program) == show(same.program)
    assert to_json(one.program) == to_json(same.program)


H = Ref("h", "f", 8)
SPEC = Ref("standard_metadata", "egress_spec", 9)


def summed() -> Trial:
    """A header with a checksum, and statements around that have nothing to do with it."""
    csum = Ref("h", "csum", 16)
    action = Action("go", (9,), (Assign(SPEC, Num(3, 9)),))
    program = Program(
        types=(("t", (Field("f", 8), Field("g", 8), Field("csum", 16))),),
        headers=(Header("h", "t"),),
        meta=(Field("m", 8),),
        states=(State("start", (Extract("h"),)),),
        ingress=(Apply("T"), If(Compare("==", H, Num(1, 8)), (Assign(H, Num(1, 8)),))),
        egress=(Assign(Ref("meta", "m", 8), Num(1, 8)),),
        deparse=("h",),
        actions=(action,),
        tables=(Table("T", (), ("go",), Call("go", (1,))),),
        checksums=(Checksum(csum, (H, Ref("h", "g", 8)), update=True),),
    )
    return Trial(program, ((1, b"\x01\x02\x03\x04\x05"), (0, b"\x01")))


def test_the_interpreter_says_what_is_right() -> None:
    test = summed()
    right = expected(test, to_json(test.program))
    assert right.sent == ([(3, b"\x01\x02\xfe\xfd\x05")],)
    assert right.packets == test.packets[:1], "the other makes the program read what is not there"


def test_a_difference_is_found_and_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(summed()) is None
    monkeypatch.setitem(ALGORITHMS, "csum16", lambda _: 7)
    found = check(summed())
    assert found is not None
    assert found.path == GENERAL
    least = minimised(found)
    assert least.trial.program.ingress == least.trial.program.egress == ()
    assert least.trial.program.tables == ()
    assert [len(data) for _, data in least.trial.packets] == [4]
    text = command.report(least)
    assert "update_checksum(true, {}, hdr.h.csum, csum16);" in text
    assert "port 0: 0" in text


OVERLOOKS = """
from fuzz.programs.campaign import run_batch
from ina.switch.ir.stmt import CopyHeader
from ina.switch.passes.effect_rules import RULES

RULES[CopyHeader] = lambda *_: None
assert not run_batch(0, 10)
"""


def test_a_pass_that_overlooks_copies_of_headers_is_found() -> None:
    """In a process of its own, which what comes of that may end."""
    done = subprocess.run([sys.executable, "-c", OVERLOOKS], cwd=ROOT, timeout=250, check=False)
    assert done.returncode != 0


def test_a_program_that_cannot_be_loaded_is_a_finding() -> None:
    test = summed()
    program = test.program
    broken = Program(**{**vars(program), "ingress": (SetValid("nowhere", True),)})
    found = check(Trial(broken, test.packets))
    assert found is not None
    assert found.path == "compiler"


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    state = tmp_path / "state.json"
    assert [it.next for it, _ in campaign(3, 2, 1, state)] == [5]
    assert json.loads(state.read_text())["next"] == 5
    assert [it.next for it, _ in campaign(3, 4, 1, state)] == [7]
    assert list(campaign(3, 4, 1, state)) == []
    assert Progress.read(state, 4) == Progress(4, 4)
    state.write_text("[]")
    with pytest.raises(StateError, match=r"state\.json: not the state"):
        Progress.read(state, 3)
