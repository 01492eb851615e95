"""The backend in real processes, through the embedded controller and soft switch."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ina.controller.embedded import Embedded
from tests.torch import group_cases
from tests.worlds.processes.launch import finish, launch, outcome, start
from tests.worlds.processes.stand_ins import python


def test_many_in_flight(tmp_path: Path) -> None:
    assert launch(group_cases.many_in_flight, 3, tmp_path / "w") == [True] * 3


def test_futures_chain(tmp_path: Path) -> None:
    assert launch(group_cases.futures_chain, 2, tmp_path / "w") == [0.5, 0.5]


def test_odd_tensors(tmp_path: Path) -> None:
    assert launch(group_cases.odd_tensors, 3, tmp_path / "w") == [True] * 3


def test_each_collective_says_its_path_once(tmp_path: Path) -> None:
    outcomes = launch(group_cases.other_collectives, 3, tmp_path / "w")
    lines, stats = outcomes[0]
    assert len(lines) == len(set(lines))
    for name in ("scatter", "gather", "send"):
        why = "because the network does not do it"
        assert f"INFO ina: {name} in group 0 goes through Gloo {why}" in lines
    for name in ("broadcast of float32", "barrier", "all_gather of float32", "reduce of float32"):
        assert f"INFO ina: {name} in group 0 goes through the network" in lines
    assert (
        "WARNING ina: all_reduce MAX of float32 in group 0 goes through Gloo because the network"
        " sums SUM and AVG only" in lines
    )
    assert stats.fallback_reasons == {
        "all_reduce MAX of float32": 2,
        "all_reduce SUM of float64": 2,
    }
    assert stats.fallbacks == 4
    assert (stats.network_broadcasts, stats.network_barriers, stats.network_reduces) == (2, 2, 2)
    assert stats.network_all_gathers == 2 * (2 + 2)  # of objects their sizes, then themselves
    others = {one.replace("alltoall_base", "all_to_all_single") for one in stats.other_collectives}
    assert others == {"scatter", "gather", "send", "all_to_all_single"}
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


def test_groups_of_a_job_without_a_name_are_seen_to_belong_together(tmp_path: Path) -> None:
    for pair, whole in launch(group_cases.sub_groups, 4, tmp_path / "w"):
        assert pair.startswith(f"{whole}/")


def test_not_finite(tmp_path: Path) -> None:
    assert launch(group_cases.not_finite, 2, tmp_path / "w") == [(True, True)] * 2


def test_second_default_group(tmp_path: Path) -> None:
    assert launch(group_cases.twice, 2, tmp_path / "w") == [40.0, 40.0]


def test_exit_without_destroy(tmp_path: Path) -> None:
    """The workers' exit hook leaves the job; it writes the counters on its way."""
    environ = {"INA_STATS_DIR": str(tmp_path)}
    sums = launch(group_cases.sums_once, 3, tmp_path / "w", environ=environ, destroy=False)
    assert sums == [30.0] * 3
    for rank in range(3):
        stats = json.loads((tmp_path / f"group0.rank{rank}.json").read_text())
        assert (stats["rank"], stats["network_all_reduces"]) == (rank, 1)


_SCRIPT = """
import torch, torch.distributed as dist, ina.torch
dist.init_process_group("ina", store=dist.HashStore(), rank=0, world_size=1)
dist.all_reduce(torch.ones(3))
{end}
"""


@pytest.mark.parametrize("end", ["pass", "raise ValueError('the script fails')"])
def test_script_that_does_not_destroy_its_group_ends(tmp_path: Path, end: str) -> None:
    ran = subprocess.run(
        [python(), "-c", _SCRIPT.format(end=end)],
        env={**os.environ, "INA_STATS_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == (0 if end == "pass" else 1)
    last = ran.stderr.splitlines()[-1]
    assert ("INA_CONTROLLER is not set" if end == "pass" else "ValueError: the script") in last
    assert json.loads((tmp_path / "group0.rank0.json").read_text())["network_all_reduces"] == 1


def test_sub_group_of_a_gloo_group(tmp_path: Path) -> None:
    sums = launch(group_cases.ina_inside_gloo, 3, tmp_path / "w", backend="gloo")
    assert sums == [None, 3.0, 3.0]


def test_running_controller_is_joined(tmp_path: Path) -> None:
    with Embedded(values=64) as embedded:
        environ = {"INA_CONTROLLER": embedded.controller_addr, "INA_JOB": "mine"}
        stats = launch(group_cases.its_stats, 2, tmp_path / "w", environ=environ)
        assert [one.job for one in stats] == ["mine", "mine"]
        assert [one.switch for one in stats] == [None, None]
        assert embedded.switch.stats().rx_packets >= 2


def test_no_controller_there_is_an_error_on_every_rank(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    environ = {"INA_CONTROLLER": "127.0.0.1:9"}
    workers = start(group_cases.sums_once, 2, folder, environ=environ, group_timeout_s=1.0)
    finish(workers, 60.0)
    for rank in range(2):
        ok, said = outcome(folder, rank)
        assert not ok
        assert "ControllerError" in said or "ControllerTimeoutError" in said, said


def test_switch_that_cannot_start_is_an_error_on_every_rank(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    # TEST-NET-1: an address that this machine does not have
    workers = start(group_cases.sums_once, 2, folder, environ={"INA_HOST": "192.0.2.1"})
    finish(workers, 60.0)
    first, second = outcome(folder, 0), outcome(folder, 1)
    assert not first[0]
    assert not second[0]
    assert "INA_HOST=192.0.2.1: this host has no IPv4 address 192.0.2.1" in second[1]


def test_dead_worker_is_an_error_not_a_hang(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    environ = {"INA_LEAVE_TIMEOUT_S": "1", "INA_LEASE_S": "1"}
    workers = start(group_cases.leaves_early, 3, folder, environ=environ, group_timeout_s=30.0)
    finish(workers, 60.0)
    for rank in (0, 1):
        ok, said = outcome(folder, rank)
        assert ok, said
        assert said.startswith("WorkerLostError: "), said
        assert "rank 2" in said


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("INA_VALUES", "100", "INA_VALUES=100: there are builds for 64, 256, 360 or 1024 values"),
        ("INA_LOSS_RATE", "1.5", "INA_LOSS_RATE=1.5: want 0 <= rate < 1"),
        ("INA_LOSS_RATE", "some", "INA_LOSS_RATE=some: want a number"),
        (
            "INA_CONTROLLER",
            "nowhere",
            "INA_CONTROLLER=nowhere: want host:port, separated by commas",
        ),
        ("INA_ON_SWITCH_LOSS", "x", "INA_ON_SWITCH_LOSS=x: want error or fallback"),
        ("INA_PRIORITY", "high", "INA_PRIORITY=high: want an integer"),
        (
            "INA_DEADLINE",
            "soon",
            "INA_DEADLINE=soon: 'soon' is neither seconds from now nor a time as"
            " 2026-11-25T18:00:00+01:00",
        ),
        ("INA_STEPS", "-1", "INA_STEPS=-1: steps is -1: must not be negative"),
        ("INA_QUEUE_S", "1e9", "INA_QUEUE_S=1e9: queue_s is 1e+09, must be 0 to 604800 (a week)"),
        ("INA_STATS_DIR", "/no/such", "INA_STATS_DIR=/no/such: there is no such folder"),
        ("INA_TRANSPORT", "tcp", "INA_TRANSPORT=tcp: want auto or udp or shm or roce or roce-soft"),
        ("INA_THREADS", "3", "INA_THREADS=3: want 1, 2, 4, 8, or 0 (automatic)"),
        ("INA_VERIFY", "yes", "INA_VERIFY=yes: want off or accidents or keyed"),
        ("INA_DSCP", "64", "INA_DSCP=64: want a DSCP, 0 to 63"),
        ("INA_DSCP", "-1", "INA_DSCP=-1: want a DSCP, 0 to 63"),
        ("INA_DSCP", "EF", "INA_DSCP=EF: want an integer"),
        ("INA_THREADS", "all", "INA_THREADS=all: want an integer"),
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
