"""Mode shared over a real network: a switch whose slots jobs share, an aggregator behind it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from bmv2_tests import training
from bmv2_tests.network import Network, running
from bmv2_tests.plans import HostPlace, star
from bmv2_tests.process import PYTHON
from ina.cli.common import torchrun
from ina.protocol.spec import UDP_PORT

PLAN = star(4)
RANKS, AGGREGATOR = PLAN.hosts[:3], PLAN.hosts[3]
EPOCHS, VALUES, GRPC_PORT = 1, 256, 9559
_TIMEOUT_S = 240.0
_REACHED_S = 60.0


def listed(place: HostPlace) -> str:
    """An aggregator on this host, for the controller's file."""
    return (
        f'[[aggregator]]\nname = "agg"\ngrpc_addr = "{place.control_address}:{GRPC_PORT}"\n'
        f'data_host = "{place.address}"\ndata_mac = "{place.mac}"\nport = {place.port}\n'
    )


def start_aggregator(network: Network, place: HostPlace) -> None:
    """And waits until the controller has programmed it."""
    where = ("--listen", f"{place.address}:{UDP_PORT}")
    grpc = ("--grpc-addr", f"{place.control_address}:{GRPC_PORT}")
    command = [*PYTHON, "ina", "aggregator", *where, *grpc, "--json"]
    network.run(network.node(place), command, "aggregator").ready()
    deadline_s = time.monotonic() + _REACHED_S
    while True:
        (shown,) = network.ina("controller", "status", "--controller", network.controller)
        states = {it["name"]: it["state"] for it in shown["switches"]}
        if set(states.values()) == {"connected"}:
            return
        assert time.monotonic() < deadline_s, states


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The same training in mode pool, with an embedded switch on the loopback interface."""
    pytest.importorskip("torch")
    pytest.importorskip("sklearn")
    result = tmp_path_factory.mktemp("alone") / "result.json"
    torchrun.run(
        training.SCRIPT,
        ["--backend=ina", f"--epochs={EPOCHS}", f"--result={result}"],
        workers=len(RANKS),
        environ={"INA_VALUES": str(VALUES)},
        timeout_s=_TIMEOUT_S,
        on_line=print,
    )
    document: dict[str, Any] = json.loads(result.read_text())
    return document


@pytest.mark.timeout(600)
@pytest.mark.parametrize("where", ["on a host of its own", "in rank 0"])
def test_ddp_learns_what_it_learns_in_mode_pool(
    kind: str, where: str, alone: dict[str, Any], tmp_path: Path
) -> None:
    is_listed = where != "in rank 0"
    config = listed(AGGREGATOR) if is_listed else ""
    with running(PLAN, kind, tmp_path, values=VALUES, mode="shared", config=config) as network:
        if is_listed:
            start_aggregator(network, AGGREGATOR)
        result = tmp_path / "result.json"
        more = {"INA_MODE": "shared"}
        ranks = training.start(network, EPOCHS, result, hosts=RANKS, more=more)
        trained = training.finish(ranks, result, _TIMEOUT_S)
        runs_it = "rank 0 runs the job's aggregator" in ranks[0].text()
        assert runs_it is not is_listed
    assert trained["parameters_sha256"] == alone["parameters_sha256"]  # bit for bit
    assert trained["losses"] == alone["losses"]
