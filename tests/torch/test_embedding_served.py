"""Rows in processes of their own: ``ina embed serve``, one for the ranks of a host."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch

from ina.embed.serving import Serving
from tests.torch import embedding_cases as cases
from tests.torch.embedding_cases import Served, Training
from tests.worlds.fakes.scrape import scrape
from tests.worlds.processes.launch import Case, finish, launch, outcome, start

WORKERS = 3
_OPTIONS = ("--metrics", "127.0.0.1:0", "--json")


class Server:
    """A process that serves."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ina", "embed", "serve", self.path, *_OPTIONS],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.metrics = json.loads(self.process.stdout.readline())["metrics"]

    def count(self, name: str) -> float:
        """Of all groups that it has a part in."""
        return sum(one.value for one in scrape(self.metrics).families[f"ina_embed_{name}"].samples)

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        assert not Path(self.path).exists()


Serve = Callable[[], str]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Serves in this process, at a path that it returns."""
    with ExitStack() as stack:
        paths = (tmp_path / f"s{number}" for number in itertools.count())

        def begin() -> str:
            path = next(paths)
            stack.enter_context(Serving(path))
            return str(path)

        yield begin


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path / "served")
    yield found
    found.close()


def run(case: Case, folder: Path, loss: str = "0") -> list[Any]:
    return launch(case, WORKERS, folder, environ={"INA_LOSS_RATE": loss}, backend="gloo")


@pytest.mark.long
def test_a_service_for_each_rank_learns_the_same_bits(serve: Serve, tmp_path: Path) -> None:
    """With replicas that come and go, and losses."""
    paths = tuple(serve() for _ in range(WORKERS))
    case = Training("adagrad", 6, refresh_steps=2)
    own = run(case, tmp_path / "own")
    assert run(Served(case, paths), tmp_path / "served", loss="0.05") == own


def test_a_service_for_all_ranks_learns_what_torch_does(server: Server, tmp_path: Path) -> None:
    case = Training("rowwise_adagrad", 6, refresh_steps=2)
    found = run(Served(case, (server.path,)), tmp_path / "ranks")
    assert all(one == found[0] for one in found)
    for table, want in cases.in_one_process("rowwise_adagrad", 6, WORKERS).items():
        torch.testing.assert_close(cases.values_of(found[0], table), want, rtol=1e-5, atol=1e-5)
    assert server.count("version") == 0  # it has no part in any group any more


@pytest.mark.long
def test_a_state_that_is_saved_there_trains_on(serve: Serve, tmp_path: Path) -> None:
    assert all(run(Served(cases.saves_and_loads, (serve(),)), tmp_path / "a"))


@pytest.mark.long
def test_rows_of_services_are_kept_in_inference(serve: Serve, tmp_path: Path) -> None:
    for same, _, hits in run(Served(cases.cached, (serve(),)), tmp_path / "a"):
        assert same
        assert hits == 2 * 60


@pytest.mark.long
def test_a_service_that_is_killed_is_named(server: Server, tmp_path: Path) -> None:
    case = Served(cases.Killed(WORKERS, trains=True), (server.path,))  # of no rank
    ranks = start(case, WORKERS, tmp_path / "a", backend="gloo", destroy=False)
    while server.count("version") < 3:
        assert all(rank.is_alive() for rank in ranks)
    os.kill(server.process.pid, signal.SIGKILL)
    Path(server.path).unlink()  # nobody else does
    finish(ranks, 90.0)
    for rank in range(WORKERS):
        said = outcome(tmp_path / "a", rank)[1]
        assert re.match(rf"HostLostError: .*: host {WORKERS} \(127.0.0.1:", said), said


@pytest.mark.long
def test_a_rank_that_is_killed_is_named_and_its_service_serves_others(
    server: Server, tmp_path: Path
) -> None:
    for victim in range(WORKERS):
        folder = tmp_path / f"ranks{victim}"
        case = Served(cases.Killed(victim, trains=True), (server.path,))
        ranks = start(case, WORKERS, folder, backend="gloo", destroy=False)
        finish(ranks, 90.0)
        for rank in set(range(WORKERS)) - {victim}:
            said = outcome(folder, rank)[1]
            assert re.match(rf"HostLostError: .*: host {victim} \(127.0.0.1:", said), said


def test_where_nobody_serves_all_ranks_say_so(tmp_path: Path) -> None:
    case = Served(cases.says_what_fails, (str(tmp_path / "nowhere"),))
    for said in run(case, tmp_path / "a"):
        assert said.startswith("ServiceLostError: INA_EMBED=")
        assert "nobody serves there: ina embed serve" in said


@pytest.mark.long
def test_a_rank_without_a_service_is_named(serve: Serve, tmp_path: Path) -> None:
    case = Served(cases.says_what_fails, (serve(), ""))
    for said in run(case, tmp_path / "a"):
        assert said == (
            "HostsDifferError: rank 1 has no service of its host (INA_EMBED), and others have"
        )
