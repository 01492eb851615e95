"""Other people's programs: p4c's v1model samples on the soft switch and on BMv2, packet by packet.

INA_P4C_SAMPLES names a folder of P4 programs (p4c's testdata/p4_16_samples); p4c-bm2-ss and
simple_switch must be on PATH. Each program gets random entries in its tables, and packets from its
parser, from its STF file, mutated, and noise. Minutes to an hour: `pytest -n 2`.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir import Program, load_program
from ina.switch.ir.stmt import RegisterRead, RegisterWrite
from ina.switch.ir.walk import pipeline_parts, walk
from ina.switch.p4runtime.config import config_from_files
from ina.switch.p4runtime.schema import build_schema
from ina.switch.targets import default_target
from tests.switch.samples import simple_switch
from tests.switch.samples.entries import with_random_entries
from tests.switch.samples.packets import packets

SAMPLES = os.environ.get("INA_P4C_SAMPLES", "")
SEED = int(os.environ.get("INA_P4C_SEED", "1"))
COMPILER = "p4c-bm2-ss"
COMPILE_S = 500
PROGRAM = "program.json"
P4INFO = "p4info.txtpb"


def _samples() -> list[Path]:
    if not SAMPLES:
        return []
    folder = Path(SAMPLES)
    assert folder.is_dir(), f"INA_P4C_SAMPLES={SAMPLES} is no folder"
    found = [
        p for p in sorted(folder.rglob("*.p4")) if "v1model.p4" in p.read_text(errors="replace")
    ]
    assert found, f"no v1model program in INA_P4C_SAMPLES={SAMPLES}"
    return found


def _why_not() -> str:
    if not SAMPLES:
        return "set INA_P4C_SAMPLES to p4c's testdata/p4_16_samples (takes long)"
    missing = [tool for tool in (COMPILER, simple_switch.BINARY) if shutil.which(tool) is None]
    return f"needs {' and '.join(missing)} on PATH" if missing else ""


WHY_NOT = _why_not()


def compiled(sample: Path, folder: Path) -> str:
    """The BMv2 JSON, with P4Info beside it if p4c can say it; skips the test where p4c refuses."""
    target = folder / PROGRAM
    for options in ([f"--p4runtime-files={folder / P4INFO}"], []):
        done = subprocess.run(
            [COMPILER, "--std", "p4-16", *options, "-o", str(target), str(sample)],
            cwd=sample.parent, capture_output=True, text=True, timeout=COMPILE_S, check=False,
        )  # fmt: skip
        if done.returncode == 0 and target.exists():
            return target.read_text()
        (folder / P4INFO).unlink(missing_ok=True)
    lines = [line for line in done.stderr.splitlines() if "error:" in line] or ["no output"]
    pytest.skip(f"p4c refuses: {lines[0][-150:]}")


def _shared_registers(program: Program) -> set[str]:
    """Registers of both pipelines."""
    ingress, egress = (
        {
            node.register.name
            for node in walk(tuple(pipeline_parts(program, pipeline)))
            if isinstance(node, RegisterRead | RegisterWrite)
        }
        for pipeline in (program.ingress, program.egress)
    )
    return ingress & egress


@pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
@pytest.mark.parametrize("sample", _samples() or [None], ids=lambda s: s.stem if s else "none")
def test_sample(sample: Path, tmp_path: Path) -> None:
    text = compiled(sample, tmp_path)
    random_ = random.Random(f"{SEED} {sample.stem}")
    try:
        program = load_program(text)
    except UnsupportedProgramError as error:
        pytest.skip(f"refused: {error}")
    if (tmp_path / P4INFO).exists():
        build_schema(config_from_files(tmp_path / P4INFO, tmp_path / PROGRAM).p4info, program)
    text = with_random_entries(text, program, random_)
    sent = packets(program, sample.with_suffix(".stf"), simple_switch.MAX_PACKETS, random_)
    try:
        with default_target(tmp_path / "cache").load(text) as pipeline:
            own = simple_switch.outputs(pipeline.process_batch(sent))
    except UnsupportedProgramError as error:
        pytest.skip(f"refused: {error}")
    try:
        theirs = simple_switch.run(text, sent, tmp_path / "bmv2")
        if own != theirs and (shared := _shared_registers(program)):
            pytest.skip(f"a race in BMv2: ingress and egress are threads, both use {shared}")
        if own != theirs and simple_switch.run(text, sent, tmp_path / "again") != theirs:
            pytest.skip("BMv2's own output differs from run to run (time, stale fields)")
    except simple_switch.AbortedError as error:
        left = error.left
        if any(own[port][: len(seen)] != seen for port, seen in left.items()):
            # What it did on its way to the abort may have been undefined, too.
            with pytest.raises(simple_switch.AbortedError) as again:
                simple_switch.run(text, sent, tmp_path / "aborted")
            left = {port: _common(seen, again.value.left[port]) for port, seen in left.items()}
        for port, expected in left.items():
            assert own[port][: len(expected)] == expected, f"port {port}, seed {SEED}"
        pytest.skip(f"BMv2 aborts: {error}")
    for port, expected in theirs.items():
        assert own[port] == expected, f"port {port}, seed {SEED}"


def _common(first: list[bytes], second: list[bytes]) -> list[bytes]:
    """The packets up to the first one in which the runs differ."""
    pairs = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return [packet for packet, _ in pairs]
