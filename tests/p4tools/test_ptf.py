"""PTF, unchanged and in an environment of its own, tests both switches."""

from __future__ import annotations

from pathlib import Path

import pytest

from ina.p4 import compiled
from ina.protocol.emit import ROOT
from tests.selection import SWITCHES
from tests.worlds.processes.both_switches import GRPC_ADDR, lab

TESTS = ("TwoWorkersAreSummed", "StrangersAreRefused", "OtherTrafficIsForwarded")


@pytest.mark.parametrize("kind", SWITCHES)
def test_ptf(kind: str, with_shell: Path, tmp_path: Path) -> None:
    program = compiled(64)
    params = {
        "grpc": GRPC_ADDR,
        "p4info": program.p4info,
        "program": program.bmv2_json,
        "layer": ROOT / "ina/protocol/generated/scapy_layer.py",
    }
    text = ";".join(f"{name}='{value}'" for name, value in params.items())
    with lab(kind) as network:
        cables = [w for n in network.ports for w in ("--interface", f"{n}@eth{n}")]
        said = network.run(
            *(str(with_shell), str(with_shell.with_name("ptf")), "--test-dir"),
            *(str(ROOT / "examples/ptf"), *cables, "--test-params", text),
            *("--log-file", str(tmp_path / "ptf.log")),
        )
    for name in TESTS:
        assert f"pool.{name} ... ok" in said
    assert f"Ran {len(TESTS)} tests" in said
    assert "FAILED" not in said
