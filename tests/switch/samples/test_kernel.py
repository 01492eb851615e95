"""p4c's v1model samples and their STF files on device xdp: how many load, and none does other than
the soft switch. docs/xdp.md has the numbers.

INA_P4C_SAMPLES names the folder of samples, as in test_samples.py; p4c-bm2-ss must be on PATH.
Some minutes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from ina.testing.soft_device import cannot_run_xdp
from tests.switch.samples import stf
from tests.switch.samples.kernel import FAILS, Verdict, judge, table

SAMPLES = os.environ.get("INA_P4C_SAMPLES", "")
SEED = int(os.environ.get("INA_P4C_SEED", "1"))
COMPILER = "p4c-bm2-ss"
COMPILE_S = 500
PAGE = Path(__file__).parents[3] / "docs" / "xdp.md"
PROCESSES = 2


def _why_not() -> str:
    if not SAMPLES:
        return "set INA_P4C_SAMPLES to p4c's testdata/p4_16_samples (takes minutes)"
    return cannot_run_xdp() or ("" if shutil.which(COMPILER) else f"needs {COMPILER} on PATH")


def compiled(sample: Path, folder: Path) -> str:
    target = folder / f"{sample.stem}.json"
    command = [COMPILER, "--std", "p4-16", "-o", str(target), str(sample)]
    done = subprocess.run(
        command, cwd=sample.parent, capture_output=True, timeout=COMPILE_S, check=False
    )
    return target.read_text() if done.returncode == 0 and target.exists() else ""


def judged(sample: Path, folder: Path) -> Verdict:
    """In a process of its own."""
    return judge(sample, compiled(sample, folder), folder / "cache", SEED)


@pytest.mark.timeout(0)
@pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "it is there")
def test_samples_do_in_the_kernel_what_they_do_in_the_soft_switch(tmp_path: Path) -> None:
    samples = [
        it
        for it in sorted(Path(SAMPLES).rglob("*.p4"))
        if "v1model.p4" in it.read_text(errors="replace")
    ]
    with ProcessPoolExecutor(PROCESSES) as pool:
        verdicts = list(pool.map(partial(judged, folder=tmp_path), samples))
    rows = table(verdicts)
    print("\n".join(rows))
    assert [f"{it.name}: {it.difference}" for it in verdicts if it.difference] == []
    wrong = [it for it in verdicts if it.script == FAILS and it.told != "refused"]
    assert [f"{it.name}: {it.told}" for it in wrong] == []
    page = PAGE.read_text()
    assert [row for row in rows if row not in page] == []


SCRIPT = """
# A comment.
add tbl1 100 data.f2:0x0202**** setbyte(val:0x26, port:3)
add ip.lpm ipv4.dst:0x0a010000/16 go()
setdefault t drop()
mc_mgrp_create 7
mc_node_create 400 6 8
mc_node_associate 7 0
mirroring_add 11 5
packet 1 0102 03
wait
expect 2 01** 03
expect 3 0102 $
expect 4
"""


def test_a_script_is_read_as_it_stands(tmp_path: Path) -> None:
    path = tmp_path / "a.stf"
    path.write_text(SCRIPT)
    script = stf.read(path)
    assert script.packets == [(1, b"\1\2\3")]
    assert script.entries == [
        stf.Entry(
            "tbl1", 100, (("data.f2", "0x0202****"),), "setbyte", (("val", "0x26"), ("port", "3"))
        ),
        stf.Entry("ip.lpm", 0, (("ipv4.dst", "0x0a010000/16"),), "go", ()),
        stf.Entry("t", 0, (), "drop", (), is_default=True),
    ]
    assert (script.groups, script.nodes, script.sessions) == ({7: [0]}, [(400, (6, 8))], {11: 5})
    wild, whole, any_ = script.expected
    assert [wild.fits(bytes.fromhex(it)) for it in ("010203", "01ff03aa", "010204", "0102")] == [
        True, True, False, False,
    ]  # fmt: skip
    assert [whole.fits(bytes.fromhex(it)) for it in ("0102", "010203")] == [True, False]
    assert any_.fits(b"")
    longer = script.padded(2)
    assert longer.packets == [(1, b"\1\2\3\0\0")]
    assert [it.digits for it in longer.expected] == ["01**03", "01020000", ""]
    path.write_text("recirculate 3\n")
    with pytest.raises(stf.StfError, match=r"a\.stf: recirculate 3"):
        stf.read(path)
