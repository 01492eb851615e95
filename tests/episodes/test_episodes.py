"""Processes of a training over racks are killed or stopped, in both modes: each rank ends with an
error that names what was, or does not notice.

``INA_LONG_TESTS=1 python -m pytest -s tests/episodes`` runs a hundred, and prints a table.
"""

from __future__ import annotations

import random
import re
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.selection import LONG
from tests.torch.death_cases import Training
from tests.worlds.processes.fabric_services import HOSTS, LEAVES, SPINE
from tests.worlds.processes.fleet import AGGREGATOR, CONTROLLER, STANDBY, Fleet
from tests.worlds.processes.launch import finish, outcome
from tests.worlds.processes.runs import DEADLINE_S, FOREVER, Run

pytestmark = pytest.mark.timeout(3600 if LONG else 300)

RANKS = len(HOSTS)
MODES = ("pool", "shared")
DEEDS = ("kill", "stop")
RANK, LEAF, HOST_NODE = "rank", "leaf", "host node"
VICTIMS = (RANK, LEAF, SPINE, AGGREGATOR, CONTROLLER, STANDBY, HOST_NODE)
TIMES = 4
"""Of each kind: 104 episodes in both modes."""
MORE_STEPS = 10
"""That a training does which does not notice."""


@dataclass(frozen=True)
class Episode:
    """What is done to whom."""

    number: int
    mode: str
    victim: str
    deed: str

    @property
    def is_noticed(self) -> bool:
        return self.victim not in (CONTROLLER, STANDBY)

    def cause(self, victim: str | int) -> str:
        """What all ranks that are left are to say, as a pattern; of a rank of the victim's host
        node, too."""
        if self.victim in (RANK, HOST_NODE):
            below = "; ranks 1-3 sent to the node of their host" if victim == 0 else ""
            below = below if self.victim == HOST_NODE else ""
            how = r"(has died|is dead, stopped or not running)"
            own = rf"rank {victim} is gone, and this host's node with it"
            named = rf"rank {victim} \(.*\) {how}.*{below}"
            return rf"^WorkerLostError: .*({named}|{own})"
        gone = rf"the switch is gone: nothing has listened at {victim} at "
        return rf"^SwitchLostError: .*(switch '{victim}' is lost: |{gone})"


def episodes(mode: str) -> list[Episode]:
    """Each victim with each deed, again and again."""
    kinds = [
        (victim, deed)
        for victim in VICTIMS
        for deed in DEEDS
        if mode == "shared" or victim != AGGREGATOR
    ]
    return [Episode(number, mode, *kind) for number, kind in enumerate(kinds * TIMES)]


@pytest.fixture(scope="module")
def fleets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Fleet]]:
    """By mode; each is started when it is needed first."""
    with ExitStack() as stack:

        class Fleets(dict[str, Fleet]):
            def __missing__(self, mode: str) -> Fleet:
                self[mode] = Fleet(tmp_path_factory.mktemp(mode) / "services", mode)
                stack.enter_context(self[mode])
                return self[mode]

        yield Fleets()


def play(episode: Episode, fleet: Fleet, folder: Path) -> dict[int, str]:
    """By rank that is left: what it said at its end; empty: it did not notice."""
    dice = random.Random(episode.number)
    folder.mkdir()
    is_node = episode.victim == HOST_NODE
    environ = {**fleet.environ, "INA_JOB": folder.name}
    if is_node:
        environ["INA_HOST_NODE"] = "1"
    hosts = HOSTS[:1] * RANKS if is_node else HOSTS
    run = Run(folder / "w", RANKS, environ, Training(folder, 1, FOREVER, 0.02), hosts)
    try:
        run.wait_for_step(dice.randint(2, 8))
        victim: str | int = episode.victim
        if episode.victim in (RANK, HOST_NODE):
            victim = 0 if is_node else dice.randrange(RANKS)
            run.kill(victim, signal.SIGKILL if episode.deed == "kill" else signal.SIGSTOP)
        else:
            victim = dice.choice(LEAVES) if episode.victim == LEAF else episode.victim
            (fleet.kill if episode.deed == "kill" else fleet.stop)(victim)
        if not episode.is_noticed:
            run.wait_for_step(run.step() + MORE_STEPS)
            return {}
        cause = episode.cause(victim)
        found = {}
        for rank, error in _errors(run, [rank for rank in range(RANKS) if rank != victim]).items():
            found[rank] = "" if re.search(cause, error) else f"not {cause}: {error}"
        return found
    finally:
        run.stop()
        fleet.mend()


def _errors(run: Run, left: list[int]) -> dict[int, str]:
    finish([run.processes[rank] for rank in left], DEADLINE_S)
    found = {rank: outcome(run.folder, rank) for rank in left}
    return {rank: str(one.error if ok else one) for rank, (ok, one) in found.items()}


@pytest.mark.parametrize(
    ("mode", "victim", "deed"),
    [
        ("shared", LEAF, "kill"),
        ("shared", AGGREGATOR, "stop"),
        pytest.param("pool", RANK, "stop", marks=pytest.mark.long),
    ],
)
def test_the_cause_is_named_at_each_rank(
    mode: str, victim: str, deed: str, fleets: dict[str, Fleet], tmp_path: Path
) -> None:
    found = play(Episode(1, mode, victim, deed), fleets[mode], tmp_path / "job")
    assert not any(found.values()), found


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_a_hundred_episodes(mode: str, fleets: dict[str, Fleet], tmp_path: Path) -> None:
    wrong: list[str] = []
    played: Counter[tuple[str, str, str]] = Counter()
    right: Counter[tuple[str, str, str]] = Counter()
    for episode in episodes(mode):
        kind = (episode.mode, episode.victim, episode.deed)
        played[kind] += 1
        try:
            found = play(episode, fleets[episode.mode], tmp_path / f"job{episode.number}")
        except (AssertionError, pytest.fail.Exception) as error:
            found = {-1: str(error)}
        wrong += [f"{episode}: rank {rank}: {text}" for rank, text in found.items() if text]
        right[kind] += not any(found.values())
        wrongly = [text for text in found.values() if text]
        print(f"{' '.join(kind)}: {wrongly or 'right'}", flush=True)
    for kind, count in played.items():
        print(f"{' '.join(kind):<30} {right[kind]} of {count}")
    assert wrong == []
