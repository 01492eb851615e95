"""What the kernel's verifier refuses is told by P4: by its log, and of a program it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ina.switch.emit_ebpf.emit import EbpfSource, emit_ebpf
from ina.switch.errors import UnsupportedProgramError
from ina.switch.passes.plan import Plan
from ina.switch.targets import xdp_target
from ina.switch.xdp import compile, target
from ina.switch.xdp.libbpf import RefusedError
from ina.switch.xdp.pipeline import XdpPipeline
from ina.switch.xdp.refusals import Refusal, refusal
from ina.testing.soft_device import cannot_run_xdp
from tests.conformance.programs import FOLDER
from tests.switch.bmv2 import Builder, send, state

C = """\
INA_INLINE void ingress(packet *const p) {
    (void)p;
    if (p->a_valid) { // mine.p4:12
        p->a.x = 1;
    }
    p->a.y = 2; // mine.p4:15
    p->a.y = 2; // mine.p4:16
}

INA_INLINE void deparse(packet *const p) {
    written = 0;
}
"""
LARGE = "BPF program is too large. Processed 1000001 insn"


def logged(*lines: str) -> str:
    return "\n".join(["0: R1=ctx() R10=fp0", *lines, "processed 9 insns (limit 1000000)"])


def at(line: int, file: str = "program.c") -> str:
    return f"; {C.splitlines()[line - 1].strip()} @ {file}:{line}"


@pytest.mark.parametrize(
    ("lines", "source"),
    [
        ([at(3), "1: (b7) r0 = 0", at(6)], "mine.p4:15"),
        ([at(3), at(4)], "mine.p4:12"),
        # Of no line of P4: the last that is.
        ([at(6), at(11), "; return 0; @ ina_bpf.h:3", ";  @ program.c:0"], "mine.p4:15"),
        # Before any place of its function there is none.
        ([at(2)], ""),
        # Kernels before 6.10, of a line that is there once.
        (["; p->a.x = 1;", "; never seen"], "mine.p4:12"),
        ([], ""),
    ],
)
def test_the_last_line_of_p4_is_found(lines: list[str], source: str) -> None:
    found = refusal(logged(*lines, LARGE), C)
    assert found.source == source
    assert found.construct == (
        f"a program with so many ways through it that the kernel's verifier gives up ({LARGE})"
    )


@pytest.mark.parametrize(
    ("error", "words"),
    [
        ("The sequence of 8193 jumps is too complex.", "so many branches"),
        ("combined stack size of 2 calls is 640. Too large", "more than 512 bytes of values"),
        ("back-edge from insn 9 to 3", "a loop whose end the kernel's verifier does not see"),
        ("infinite loop detected at insn 9", "a loop whose end the kernel's verifier does not see"),
        ("function calls are not allowed while holding a lock", "between two uses of a register"),
        ("invalid access to map value, value_size=8 off=9 size=1", "stays in its bounds"),
        ("R1 unbounded memory access, make sure to bounds check any such access", "its bounds"),
    ],
)
def test_what_is_known_is_said_in_plain_words(error: str, words: str) -> None:
    found = refusal(logged(error), C)
    assert words in found.construct
    assert found.construct.endswith(f" ({error})")


def test_what_is_not_known_is_said_as_the_verifier_does() -> None:
    assert refusal(logged("R0 !read_ok"), C) == Refusal(
        "what the kernel's verifier refuses: R0 !read_ok", ""
    )


@pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there")
def test_a_program_that_is_too_large_says_where(tmp_path: Path) -> None:
    """Its parser extracts one header again and again, as far as a frame goes."""
    program = Builder(
        headers={"a": [("next", 8)], "b": [("x", 16)]},
        parser=[
            state("start", ["a"], "a.next", {1: "again", 2: "other"}),
            state("again", ["a"], "a.next", {1: "again", 2: "other"}),
            state("other", ["b"]),
        ],
        ingress=[send(2)],
    )
    with pytest.raises(UnsupportedProgramError) as found:
        xdp_target(tmp_path).load(program.json())
    [log] = tmp_path.rglob("*.log")
    assert "so many ways through it that the kernel's verifier gives up" in str(found.value)
    where = f", on device xdp (verifier's log: {log}) at parser state"
    states = ("start", "again", "other")  # it gives up at one of them, after a million steps
    assert str(found.value).endswith(tuple(f"{where} '{name}'" for name in states))
    assert LARGE[:24] in log.read_text()


@pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there")
def test_more_values_than_the_kernel_has_room_for_are_told_by_the_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clang = tmp_path / "clang"
    said = "program.c:12:3: error: Looks like the BPF stack limit of 512 bytes is exceeded. Please"
    clang.write_text(f'#!/bin/sh\n[ "$1" = --version ] || {{ echo "{said}" >&2; exit 1; }}\n')
    clang.chmod(0o755)
    monkeypatch.setenv("INA_CLANG", str(clang))
    compile._version.cache_clear()
    with pytest.raises(UnsupportedProgramError) as found:
        xdp_target(tmp_path).load(FOLDER / "checksum.json")
    compile._version.cache_clear()
    assert (
        "more than 512 bytes of values at a time in the kernel (the BPF stack limit of 512 bytes is"
        " exceeded), on device xdp" in str(found.value)
    )


@pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there")
@pytest.mark.parametrize("when", ["printed", "loaded"])
def test_without_a_main_path_that_the_kernel_refuses(
    when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    emit, power_on = emit_ebpf, XdpPipeline.power_on

    def printed(plan: Plan) -> EbpfSource:
        asked.append(plan.main is not None)
        if when == "printed" and plan.main:
            raise UnsupportedProgramError("this")
        return emit(plan)

    def loaded(*args: Any, **options: Any) -> XdpPipeline:
        if when == "loaded" and asked[-1]:
            raise RefusedError("no", LARGE)
        return power_on(*args, **options)

    monkeypatch.setattr(target, "emit_ebpf", printed)
    monkeypatch.setattr(XdpPipeline, "power_on", loaded)
    with xdp_target(tmp_path).load(FOLDER / "main_path.json"):
        assert asked == [True, False]


@pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there")
def test_a_program_whose_packets_are_all_copied_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refusing(plan: Plan) -> EbpfSource:
        if plan.main is not None:
            raise UnsupportedProgramError("too much of it")
        return emit_ebpf(plan)

    monkeypatch.setattr(target, "emit_ebpf", refusing)
    built = Builder(headers={"a": [("x", 16)]}, parser=[state("start", ["a"])], ingress=[send(2)])
    with xdp_target(tmp_path).load(built.json()) as pipeline:
        assert pipeline.process(1, bytes(60)) == [(2, bytes(60))]
    [record] = caplog.records
    said = "built.p4: every packet is copied: its main path has too much of it, on device xdp"
    assert record.getMessage() == said
