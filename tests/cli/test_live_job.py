"""Operators' commands against a real controller, with workers that stand still, leave and die."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina.host import JobEvictedError, Session
from ina.host.client import process_name
from tests.worlds.fakes.workers import workers_of
from tests.worlds.processes.controller_command import config_file, ina, started
from tests.worlds.processes.stand_ins import python

DEADLINE_S = 60.0  # for a hang


@pytest.fixture
def controller(tmp_path: Path) -> Iterator[str]:
    config = config_file(tmp_path, "[jobs]\nlease_s = 20\n")
    with started("controller", "run", str(config), "--embedded-switch") as (_, ready):
        yield ready["controller"]


def ask(controller: str, *words: str) -> Any:
    done = ina(*words, "--controller", controller, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def watching(controller: str) -> Iterator[Iterator[dict[str, Any]]]:
    """The documents of ``ina job watch``."""
    command = [python(), "-m", "ina", "job", "watch", "--json", "--controller", controller]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = map(json.loads, process.stdout)
        assert next(lines) == {"jobs": []}
        yield lines
        process.terminate()
        assert process.wait(DEADLINE_S) == 143


def pair(controller: str) -> list[Session]:
    """Two ranks of the job "train", in this process."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda rank: Session.join(controller, "train", rank, 2), range(2)))


def test_who_is_missing_is_told_live(controller: str, watching: Iterator[dict[str, Any]]) -> None:
    first, second = pair(controller)
    with first, second:
        begun = first.all_reduce(np.ones(64, np.int32), async_op=True)
        stall = next(line["stall"] for line in watching if "stall" in line)
        assert (stall["name"], stall["missing"], stall["waiting"]) == ("train", [1], [0])
        shown = ina("job", "show", "train", "--controller", controller).stdout
        assert f"rank 1 ({process_name()}) has not sent it: slot {stall['slot']}" in shown
        assert f"sequence number {stall['seq']}" in shown
        second.all_reduce(np.ones(64, np.int32))
        begun.wait(DEADLINE_S)
        kinds = (line["event"]["kind"] for line in watching if "event" in line)
        assert "JOB_RESUMED" in kinds


def test_the_doctor_asks_the_controller_that_answers(controller: str) -> None:
    first, second = pair(controller)
    with first, second:
        several = f"127.0.0.1:1,{controller}"
        (step,) = ask(several, "doctor", "--job", "train")["steps"]
        assert step["ok"], step


def test_an_evicted_job_is_gone_its_reason_is_known_and_can_be_dumped(
    controller: str, watching: Iterator[dict[str, Any]]
) -> None:
    first, second = pair(controller)
    with first, second:
        evicted = ina("job", "evict", "train", "--reason", "lunch", "--controller", controller)
        assert evicted.stdout == "evicted train: slots 0..511 are free\n"
        with pytest.raises(JobEvictedError, match="lunch"):
            first.all_reduce(np.ones(64, np.int32))
    assert ask(controller, "job", "list") == []
    switch = ask(controller, "switch", "show")
    assert {entry["table"] for entry in switch["entries"]} == {"own_addresses"}
    assert (switch["slots_used"], switch["jobs"]) == (0, [])
    kinds = []
    for line in watching:
        kinds.append(line["event"]["kind"])
        if kinds[-1] == "JOB_ENDED":
            break
    assert kinds[0] == "JOB_CREATED"
    assert "JOB_EVICTED" in kinds
    document = ask(controller, "job", "dump", "train")
    assert document["job"]["state"] == "ended"
    assert any("lunch" in event["reason"] for event in document["history"])
    shown = ina("job", "show", "train", "--controller", controller).stdout
    assert shown.startswith("job train has ended\n")
    unknown = ina("job", "show", "other", "--controller", controller)
    assert unknown.returncode == 2


def test_a_running_job_as_the_switch_has_it(controller: str) -> None:
    with workers_of(controller) as workers:
        workers.run_job("train", 2)
        document = ask(controller, "switch", "show", "--job", "train")
        assert {entry["job"] for entry in document["entries"]} == {"train"}
        assert len(document["entries"]) == 6
        assert not any(entry["foreign"] for entry in document["entries"])
        dumped = ask(controller, "job", "dump", "train")
    assert dumped["switch"]["entries"] == document["entries"]
    assert dumped["controller"]["role"] == "primary"
    assert dumped["errors"] == {}
    assert ask(controller, "switch", "remove-foreign") == []
    (status,) = ask(controller, "controller", "status")
    assert (status["role"], status["slots_total"]) == ("primary", 8192)
