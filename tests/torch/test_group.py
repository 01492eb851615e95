"""The backend in real processes, through the embedded controller and soft switch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.torch import group_cases
from tests.torch.launch import finish, launch, outcome, start


def test_many_in_flight(tmp_path: Path) -> None:
    assert launch(group_cases.many_in_flight, 3, tmp_path / "w") == [True] * 3


def test_futures_chain(tmp_path: Path) -> None:
    assert launch(group_cases.futures_chain, 2, tmp_path / "w") == [0.5, 0.5]


def test_odd_tensors(tmp_path: Path) -> None:
    assert launch(group_cases.odd_tensors, 3, tmp_path / "w") == [True] * 3


def test_other_collectives_go_through_gloo_and_say_so_once(tmp_path: Path) -> None:
    outcomes = launch(group_cases.other_collectives, 3, tmp_path / "w")
    lines, stats = outcomes[0]
    assert len(lines) == len(set(lines))
    for name in ("broadcast", "barrier", "allgather", "reduce", "scatter", "gather"):
        assert (
            f"INFO ina: {name} in group 0 goes through Gloo because the network does all_reduce"
            " only" in lines
        )
    assert (
        "WARNING ina: all_reduce MAX of float32 in group 0 goes through Gloo because the network"
        " sums SUM and AVG only" in lines
    )
    assert stats.fallback_reasons == {
        "all_reduce MAX of float32": 2,
        "all_reduce SUM of float64": 2,
    }
    assert stats.fallbacks == 4
    assert all(line.startswith("DEBUG") for line in outcomes[1][0])


def test_ddp_agrees_with_gloo(tmp_path: Path) -> None:
    ours = launch(group_cases.train, 3, tmp_path / "ina")
    gloo = launch(group_cases.train, 3, tmp_path / "gloo", backend="gloo")
    parameters = [np.array(flat) for flat, _ in ours]
    assert np.array_equal(parameters[0], parameters[1])
    assert np.array_equal(parameters[0], parameters[2])
    assert np.abs(parameters[0] - np.array(gloo[0][0])).max() < 1e-5
    for _, stats in ours:
        assert stats.network_all_reduces > 8  # several buckets a step
        assert stats.fallbacks == 0


def test_sub_groups_have_jobs_of_their_own(tmp_path: Path) -> None:
    jobs = launch(group_cases.sub_groups, 4, tmp_path / "w", environ={"INA_JOB": "training"})
    assert [whole for _, whole in jobs] == ["training"] * 4
    pairs = [pair for pair, _ in jobs]
    assert pairs[0] == pairs[1] != pairs[2] == pairs[3]
    assert all(name.startswith("training/") for name in pairs)


def test_not_finite(tmp_path: Path) -> None:
    assert launch(group_cases.not_finite, 2, tmp_path / "w") == [(True, True)] * 2


def test_second_default_group(tmp_path: Path) -> None:
    assert launch(group_cases.twice, 2, tmp_path / "w") == [40.0, 40.0]


def test_exit_without_destroy(tmp_path: Path) -> None:
    assert launch(group_cases.sums_once, 3, tmp_path / "w", destroy=False) == [30.0] * 3


def test_dead_worker_is_an_error_not_a_hang(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    environ = {"INA_LEAVE_TIMEOUT_S": "1"}
    workers = start(group_cases.leaves_early, 3, folder, environ=environ, group_timeout_s=4.0)
    finish(workers, 60.0)
    for rank in (0, 1):
        ok, said = outcome(folder, rank)
        assert ok, said
        assert said.startswith("OperationTimeoutError: "), said
        assert f"rank {rank}" in said


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("INA_VALUES", "100", "INA_VALUES=100: there are builds for 64 or 256 values"),
        ("INA_LOSS_RATE", "1.5", "INA_LOSS_RATE=1.5: want 0 <= rate < 1"),
        ("INA_LOSS_RATE", "some", "INA_LOSS_RATE=some: want a number"),
        ("INA_CONTROLLER", "nowhere", "INA_CONTROLLER=nowhere: want host:port"),
        ("INA_STATS_DIR", "/no/such", "INA_STATS_DIR=/no/such: there is no such folder"),
    ],
)
def test_wrong_settings_are_named(name: str, value: str, message: str) -> None:
    from ina.torch.env import Settings
    from ina.torch.errors import SettingError

    with pytest.raises(SettingError) as caught:
        Settings.from_environ({name: value})
    assert str(caught.value) == message


def test_loss_needs_the_embedded_switch() -> None:
    from ina.torch.env import Settings
    from ina.torch.errors import SettingError

    with pytest.raises(SettingError, match="INA_LOSS_RATE is for the embedded switch"):
        Settings.from_environ({"INA_CONTROLLER": "h:1", "INA_LOSS_RATE": "0.1"})
