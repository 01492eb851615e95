"""Sums through the whole stack: processes, controller, soft switch, compiled P4."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.sum_cases import FLOATS, LENGTHS, all_sums
from tests.worlds.processes.launch import launch


def long(workers: int, loss: str) -> object:
    """Which other rows say of each alone."""
    return pytest.param(workers, loss, marks=pytest.mark.long)


@pytest.mark.parametrize(
    ("workers", "loss"),
    [
        *((1, "0"), (2, "0.05"), (3, "0"), (8, "0.05")),
        *(long(1, "0.05"), long(2, "0"), long(3, "0.05"), long(8, "0")),
    ],
)
def test_sums(workers: int, loss: str, tmp_path: Path) -> None:
    outcomes = launch(all_sums, workers, tmp_path / "w", environ={"INA_LOSS_RATE": loss})
    sums_by_rank = [sums for sums, _ in outcomes]
    stats = [stats for _, stats in outcomes]
    bad = [one for sums in sums_by_rank for one in sums if one.wrong_elems]
    assert bad == []
    for same in zip(*sums_by_rank, strict=True):
        assert len({one.digest for one in same}) == 1, same
    wanted = len(LENGTHS) + len(FLOATS) * (2 * len(LENGTHS) - 1)
    for one in stats:
        assert one.network_all_reduces == wanted
        assert one.fallbacks == 0
    switch = stats[0].switch
    assert switch is not None
    dropped = switch["loss_in_packets"] + switch["loss_out_packets"]
    if loss == "0":
        assert dropped == 0
    else:
        assert dropped > 0
        assert sum(one.session["retransmissions"] for one in stats) > 0
    # Each sum that P4 completed holds one contribution of each worker, none twice.
    packets = {c["name"].rpartition(".")[2]: c["packets"] for c in switch["counters"]}
    assert packets["job_contributions"] == workers * packets["job_results"]
