"""examples/ddp_digits.py over the hosts of a topology, one rank a host, as torchrun would do."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bmv2_tests import jobs
from bmv2_tests.network import Network
from bmv2_tests.plans import HostPlace
from bmv2_tests.process import ROOT, NodeProcess

SCRIPT = ROOT / "examples" / "ddp_digits.py"


def start(
    network: Network,
    epochs: int,
    result: Path,
    log: str = "ddp",
    *,
    hosts: Sequence[HostPlace] | None = None,
    more: Mapping[str, str] | None = None,
) -> list[NodeProcess]:
    """Starts the ranks. The rendezvous is on the control network, the gradients are not.

    ``hosts``: of these, all if None; ``more``: in their environment.
    """
    places = network.plan.hosts if hosts is None else hosts
    ranks = []
    for rank, place in enumerate(places):
        environ = jobs.torch_environ(network, places, rank) | dict(more or {})
        command = [sys.executable, "-u", str(SCRIPT), "--epochs", str(epochs)]
        command += ["--result", str(result)]
        ranks.append(network.run(network.node(place), command, f"{log}-{place.name}", environ))
    return ranks


def finish(ranks: list[NodeProcess], result: Path, timeout_s: float) -> dict[str, Any]:
    """Waits for all; returns rank 0's result."""
    codes = [rank.wait(timeout_s) for rank in ranks]
    assert codes == [0] * len(codes), "\n".join(rank.text() for rank in ranks)
    document: dict[str, Any] = json.loads(result.read_text())
    return document
