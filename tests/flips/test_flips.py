"""Bits flip on the way and in the switch's memory, contributions are forged: no wrong sum is taken.

The switch runs the compiled P4 program, behind UDP or packet sockets; the workers are sessions.
Of each job that ends for it, each chunk is looked at.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina import host
from ina.host import Session
from ina.protocol.verify import Verify
from ina.testing import numerics
from tests.flips.damage import Flipper
from tests.flips.forger import Forger
from tests.flips.jobs import WORKERS, Attack, Jobs, Tally
from tests.flips.places import Place, at_packet_sockets, at_udp_ports
from tests.selection import LONG
from tests.worlds.fakes.memory import Memory, pipeline_of

pytestmark = pytest.mark.timeout(1800 if LONG else 300)

FLIPS = 10_000 if LONG else 25
"""Of each kind, at each kind of port, however sums are verified."""
FORGED = 10_000 if LONG else 60
UNSEEN = 100 if LONG else 40
"""Of each kind, without verification."""
RATES = (0.003, 0.3, 0.3)
"""Of packets, while a job is damaged: one of these for each job."""
IN_A_STEP = (0, 0, 1, 20, 50)
"""Bits of memory that flip."""
OPEN_S = 0.05
"""How long to wait for slots that hold a part of a sum; else it is any slot."""

INTEGERS = (np.dtype(np.int32),)
Dtypes = Sequence[np.dtype[Any]]
PORTS = ("udp_ports", "packet_sockets")
VERIFIED = [
    pytest.param("accidents", INTEGERS, id="accidents-int32"),
    pytest.param("keyed", INTEGERS, id="keyed-int32", marks=pytest.mark.long),
    pytest.param("accidents", numerics.FLOATS, id="accidents-floats", marks=pytest.mark.long),
    pytest.param("keyed", numerics.FLOATS, id="keyed-floats"),
]


@pytest.fixture(scope="module")
def udp_ports() -> Iterator[Place]:
    with at_udp_ports() as place:
        yield place


@pytest.fixture(scope="module")
def packet_sockets() -> Iterator[Place]:
    with at_packet_sockets() as place:
        yield place


def check(tally: Tally) -> None:
    """Nothing wrong was taken, and jobs went on, or ended by the name of an error of ina's."""
    assert tally.wrong == []
    assert tally.chunks > 0
    assert tally.sums > 0
    for name in tally.ends:
        assert name == "done" or issubclass(
            getattr(host, name), host.JobFailedError | host.OperationTimeoutError
        ), name


def flipped_on_the_way(
    place: Place, verify: Verify, dtypes: Dtypes, to_switch: bool, flips: int
) -> Tally:
    flipper, dice = Flipper(to_switch, seed=flips), random.Random(flips)
    jobs = Jobs(place.controller, verify, dtypes, place.hosts, seed=flips)

    def begin(_: list[Session]) -> None:
        flipper.rate = dice.choice(RATES)

    def end() -> None:
        flipper.rate = 0.0

    with place.way(flipper):
        return jobs.run(Attack(lambda: flipper.flips >= flips, begin, end=end))


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize(("verify", "dtypes"), VERIFIED)
def test_of_contributions(
    verify: Verify, dtypes: Dtypes, port: str, request: pytest.FixtureRequest
) -> None:
    """The slot then holds what cannot verify: the job ends, unless the packet was refused."""
    place = request.getfixturevalue(port)
    tally = flipped_on_the_way(place, verify, dtypes, to_switch=True, flips=FLIPS)
    check(tally)
    assert tally.corrupted > 0


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize(("verify", "dtypes"), VERIFIED)
def test_of_results(
    verify: Verify, dtypes: Dtypes, port: str, request: pytest.FixtureRequest
) -> None:
    """What is sent again mends it: jobs go on."""
    place = request.getfixturevalue(port)
    tally = flipped_on_the_way(place, verify, dtypes, to_switch=False, flips=FLIPS)
    check(tally)
    assert tally.corrupted > FLIPS // 2
    if dtypes == INTEGERS:  # of floats a larger next_exponent is believed, and ends the job
        assert tally.ends["done"] > 0


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize(("verify", "dtypes"), VERIFIED)
def test_of_registers(
    verify: Verify, dtypes: Dtypes, port: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    place = request.getfixturevalue(port)
    tally = flipped_in_memory(place, verify, dtypes, FLIPS, tmp_path)
    check(tally)
    assert tally.corrupted > 0


def flipped_in_memory(
    place: Place, verify: Verify, dtypes: Dtypes, flips: int, folder: Path
) -> Tally:
    memory = Memory(pipeline_of(place.switch), WORKERS, folder)
    dice = random.Random(flips)
    done, slots, left = 0, [], []

    def begin(sessions: list[Session]) -> None:
        nonlocal slots, left
        slots = memory.owned(sessions[0].ticket.epoch)
        left = list(slots)

    def meanwhile() -> None:
        """Of a slot one bit in a job's life: two may cancel, as two of a packet may."""
        nonlocal done
        held = memory.open(left, OPEN_S)
        for _ in range(min(dice.choice(IN_A_STEP), len(left))):
            slot = dice.choice(held or left)
            left.remove(slot)
            held = [one for one in held if one != slot]
            memory.flip(dice, slot)
            done += 1

    def end() -> None:
        memory.clear_epochs(slots)

    jobs = Jobs(place.controller, verify, dtypes, place.hosts, seed=flips)
    with place.way(lambda _, packet: (packet,)):
        return jobs.run(Attack(lambda: done >= flips, begin, meanwhile, end))


def test_of_forged_contributions(udp_ports: Place) -> None:
    forger, dice = Forger(1), random.Random(1)

    def begin(_: list[Session]) -> None:
        forger.rate = dice.choice(RATES)

    def end() -> None:
        forger.rate = 0.0
        forger.forget()

    jobs = Jobs(udp_ports.controller, "keyed", numerics.FLOATS, udp_ports.hosts, seed=1)
    with udp_ports.way(forger):
        tally = jobs.run(Attack(lambda: forger.sent.total() >= FORGED, begin, end=end))
    check(tally)
    assert tally.corrupted > 0
    assert len(forger.sent) == 8


@pytest.mark.parametrize("port", PORTS if LONG else PORTS[:1])
def test_what_finds_nothing_wrong_can(
    port: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The same without verification: of each kind some are found."""
    place = request.getfixturevalue(port)
    for to_switch in (True, False):
        tally = flipped_on_the_way(place, "off", INTEGERS, to_switch, flips=UNSEEN)
        assert tally.wrong != []
        assert tally.corrupted == 0
    assert flipped_in_memory(place, "off", INTEGERS, UNSEEN, tmp_path).wrong != []
