"""DDP over hosts and switches ends with the parameters that one machine alone would end with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bmv2_tests import training
from bmv2_tests.network import running
from bmv2_tests.plans import Plan, star, two_racks
from ina.cli.common import torchrun

PLANS = {"star": star(4), "two racks": two_racks(3)}
EPOCHS, VALUES = 1, 256
_TIMEOUT_S = 240.0


@pytest.fixture(scope="module", params=list(PLANS))
def plan(request: pytest.FixtureRequest) -> Plan:
    """A host a rank."""
    return PLANS[request.param]


@pytest.fixture(scope="module")
def alone(plan: Plan, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same training under torchrun, with one embedded switch on the loopback interface."""
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    result = tmp_path_factory.mktemp("alone") / "result.json"
    torchrun.run(
        training.SCRIPT,
        ["--backend=ina", f"--epochs={EPOCHS}", f"--result={result}"],
        workers=len(plan.hosts),
        environ={"INA_VALUES": str(VALUES)},
        timeout_s=_TIMEOUT_S,
        on_line=print,
    )
    document: dict[str, Any] = json.loads(result.read_text())
    return document


@pytest.mark.timeout(600)
def test_ddp_learns_what_one_machine_learns(
    kind: str, plan: Plan, alone: dict[str, Any], tmp_path: Path
) -> None:
    with running(plan, kind, tmp_path, values=VALUES) as network:
        result = tmp_path / "result.json"
        ranks = training.start(network, EPOCHS, result)
        trained = training.finish(ranks, result, _TIMEOUT_S)
    assert trained["parameters_sha256"] == alone["parameters_sha256"]  # bit for bit
    assert trained["losses"] == alone["losses"]
