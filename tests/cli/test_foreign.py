"""A store that was lost: what it left on the switch is foreign until an operator removes it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina.controller.config import load_config
from ina.host import JobEndedError, Session
from tests.worlds.fakes.scrape import scrape
from tests.worlds.processes.controller_command import config_file, ina, started


def ask(controller: str, *words: str) -> Any:
    done = ina(*words, "--controller", controller, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def pair(controller: str, job: str) -> list[Session]:
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda rank: Session.join(controller, job, rank, 2), range(2)))


@contextmanager
def pair_of(controller: str, job: str) -> Iterator[list[Session]]:
    first, second = pair(controller, job)
    with first, second:
        yield [first, second]


def total(sessions: list[Session]) -> set[int]:
    """What a sum of 1 and 2 gives on each rank."""
    with ThreadPoolExecutor(2) as pool:
        arrays = [np.full(64, 1 + i, np.int32) for i in range(2)]
        sums = pool.map(
            lambda pair: pair[0].all_reduce(pair[1]), zip(sessions, arrays, strict=True)
        )
        return set(np.concatenate(list(sums)).tolist())


def until_it_ends(sessions: list[Session]) -> None:
    """Sums until the workers hear that nobody knows their job."""
    while total(sessions) == {3}:
        time.sleep(0.1)


def test_entries_of_a_lost_store_are_foreign_and_removed_on_order(tmp_path: Path) -> None:
    config = config_file(tmp_path)
    udp_port = load_config(config).switch.data_udp_port
    config.write_text(f'metrics = "127.0.0.1:0"\n{config.read_text()}[jobs]\nlease_s = 5\n')
    port = ("--port", f"1=udp:127.0.0.1:{udp_port}", "--grpc-addr", "127.0.0.1:0")
    with started("switch", *port) as (_, switch):
        run = ["controller", "run", str(config), "--switch", switch["grpc_addr"]]
        with started(*run) as (process, ready):
            address = ready["controller"]
            sessions = pair(address, "old")
            assert total(sessions) == {3}
            process.kill()
        with started(*run, "--listen", address) as (_, ready):
            with sessions[0], sessions[1], pytest.raises(JobEndedError):
                until_it_ends(sessions)
            shown = ask(address, "switch", "show")
            foreign = [entry for entry in shown["entries"] if entry["foreign"]]
            assert len(foreign) == 6
            assert scrape(ready["metrics"]).value("ina_controller_foreign_entries") == 6
            with pair_of(address, "new") as new:
                assert total(new) == {3}
                (job,) = ask(address, "switch", "show", "--job", "new")["jobs"]
                assert job["first_slot"] >= 512  # not the foreign job's slots
                removed = ask(address, "switch", "remove-foreign")
                assert sorted(map(str, removed)) == sorted(map(str, foreign))
                assert total(new) == {3}
            left = ask(address, "switch", "show")["entries"]
            assert {entry["table"] for entry in left} == {"own_addresses"}
            assert scrape(ready["metrics"]).value("ina_controller_foreign_entries") == 0
