"""``kill -9`` of each process of a job over two leaves and a spine; see docs/failures.md.

``pytest -s`` prints, of each, what every rank said and how long after.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from tests.torch.death_cases import Training
from tests.worlds.processes.fabric_services import HOSTS, LEAVES, SPINE, FabricServices, leaf_of
from tests.worlds.processes.runs import FOREVER, Run

RANKS = len(HOSTS)
RACK = tuple(rank for rank in range(RANKS) if leaf_of(rank) == LEAVES[0])
"""The ranks of a job in one rack."""
LEASE_S, LOSS_S = 1.0, 1.0


def long(victim: object) -> object:
    """Like one that is killed in every run, but for where it is."""
    return pytest.param(victim, marks=pytest.mark.long)


@pytest.fixture
def services(tmp_path: Path) -> Iterator[FabricServices]:
    with FabricServices(tmp_path / "services", lease_s=LEASE_S, loss_s=LOSS_S) as running:
        yield running


@pytest.fixture
def patient_services(tmp_path: Path) -> Iterator[FabricServices]:
    """Whose switches may take long to come back, on a busy machine, before they are lost."""
    with FabricServices(tmp_path / "services", lease_s=LEASE_S, loss_s=20 * LOSS_S) as running:
        yield running


def start(
    services: FabricServices,
    folder: Path,
    steps: int = FOREVER,
    pause_s: float = 0.05,
    workers: int = RANKS,
    hosts: tuple[str, ...] = HOSTS,
    settings: Mapping[str, str] = MappingProxyType({}),
) -> Run:
    """A job of the first so many ranks, called as the folder is."""
    folder.mkdir()
    environ = {**services.environ, **settings, "INA_JOB": folder.name}
    run = Run(folder / "w", workers, environ, Training(folder, 1, steps, pause_s), hosts)
    run.wait_for_step(min(3, steps))
    return run


def errors_of(run: Run, ranks: list[int], victim: str, kill: Callable[[], object]) -> list[str]:
    """What these said after ``kill``, by rank."""
    killed_s = time.time()
    kill()
    outcomes = run.outcomes(*ranks)
    for rank, one in zip(ranks, outcomes, strict=True):
        after_s = (run.folder / f"outcome{rank}").stat().st_mtime - killed_s
        print(f"kill -9 of {victim}: rank {rank} after {after_s:.1f} s: {one.error}")
    return [str(one.error) for one in outcomes]


def assert_it_starts_again(services: FabricServices, folder: Path) -> None:
    """A job of all ranks, with the right sums."""
    run = start(services, folder, steps=3)
    outcomes = run.outcomes()
    assert {one.digest for one in outcomes} == {run.training.undisturbed(RANKS)}


def test_a_killed_rank_that_ran_its_hosts_node_is_named_with_those_below(
    services: FabricServices, tmp_path: Path
) -> None:
    forced = {"INA_HOST_NODE": "1"}  # although all is on one machine
    run = start(services, tmp_path / "mine", hosts=HOSTS[:1] * RANKS, settings=forced)
    for error in errors_of(run, [1, 2, 3], "rank 0 with the node", lambda: run.kill(0)):
        assert re.search(r"WorkerLostError: .*: rank 0 \(.* pid \d+\) has died", error), error
        assert "; ranks 1-3 sent to the node of their host, in its process" in error
    assert_it_starts_again(services, tmp_path / "again")


@pytest.mark.parametrize("victim", [long(0), 3])
def test_a_killed_rank_is_named_with_its_rack(
    victim: int, services: FabricServices, tmp_path: Path
) -> None:
    run = start(services, tmp_path / "mine")
    others = [rank for rank in range(RANKS) if rank != victim]
    for error in errors_of(run, others, f"rank {victim}", lambda: run.kill(victim)):
        place = rf"{leaf_of(victim)}, {HOSTS[victim]}:\d+"
        assert re.search(rf"WorkerLostError: .*: rank {victim} \({place}\) has died", error), error
    assert_it_starts_again(services, tmp_path / "again")


@pytest.mark.parametrize("victim", [long(LEAVES[0]), LEAVES[1], long(SPINE)])
def test_a_switch_that_stays_away_is_named_to_ranks_of_both_racks(
    victim: str, services: FabricServices, tmp_path: Path
) -> None:
    """Ranks behind a dead leaf may notice by themselves; the others hear it from the controller.
    A job in one rack of another switch does not notice."""
    near = None
    if victim != leaf_of(RACK[0]):
        near = start(services, tmp_path / "near", steps=400, workers=len(RACK))
    run = start(services, tmp_path / "mine")
    errors = errors_of(run, [*range(RANKS)], victim, lambda: services.kill(victim))
    where = re.escape(services.data_addr(victim))
    gone = rf"the switch is gone: nothing has listened at {victim} at {where}"
    for rank, error in enumerate(errors):
        own = f"|{gone}" if leaf_of(rank) == victim else ""
        assert re.search(rf"SwitchLostError: .*(switch '{victim}' is lost:{own})", error), error
    if near is not None:
        near.wait_for_step(near.step() + 3)
        near.stop()


@pytest.mark.parametrize("victim", [long(LEAVES[1]), SPINE])
def test_a_switch_that_restarts_is_named_and_the_job_starts_again(
    victim: str, patient_services: FabricServices, tmp_path: Path
) -> None:
    run = start(patient_services, tmp_path / "mine")

    def restart() -> None:
        patient_services.kill(victim)
        patient_services.start(victim)

    for error in errors_of(run, [*range(RANKS)], f"{victim}, started again", restart):
        assert re.search(rf"SwitchLostError: .*: switch '{victim}' has lost its reg", error), error
    assert_it_starts_again(patient_services, tmp_path / "again")


@pytest.mark.parametrize("controller", [long("stays away"), "restarts"])
def test_training_does_not_notice_a_controller_that_dies(
    controller: str, services: FabricServices, tmp_path: Path
) -> None:
    run = start(services, tmp_path / "mine", steps=20, pause_s=0.1)
    services.kill("controller")
    run.wait_for_step(6)
    if controller == "restarts":
        services.start("controller")
    assert {one.digest for one in run.outcomes()} == {run.training.undisturbed(RANKS)}
