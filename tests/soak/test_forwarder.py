"""The network that a soak is over: what it does to packets is what it says, and all is counted."""

from __future__ import annotations

import os
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import Pipe

import pytest

from tests.worlds.fakes.forwarder import Counts, Forwarder, Weather

NET = f"127.{14}.{os.getpid() & 255}"
CALM = Weather(loss=0, copied=0, overtaken=0, kept=0)
DEADLINE_S = 20.0


@dataclass
class Running:
    """A forwarder in a thread, with a switch's socket and two workers'."""

    switch: socket.socket
    workers: list[socket.socket]
    counts: Counts | None = None


@contextmanager
def running(weather: Weather) -> Iterator[Running]:
    ours, theirs = Pipe()
    switch = udp(f"{NET}.4")
    forwarder = Forwarder((f"{NET}.3", 0), f"{NET}.2", switch.getsockname(), weather, 7)
    workers = [udp(f"{NET}.1") for _ in range(2)]
    for worker in workers:
        worker.connect(forwarder.front)
    thread = threading.Thread(target=forwarder.serve, args=(theirs,))
    thread.start()
    place = Running(switch, workers)
    try:
        yield place
    finally:
        ours.send("end")
        thread.join(DEADLINE_S)
        place.counts = Counts(**ours.recv())
        for sock in (switch, *workers):
            sock.close()


def udp(host: str) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((host, 0))
    sock.settimeout(DEADLINE_S)
    return sock


def test_each_worker_is_another_one_to_the_switch() -> None:
    with running(CALM) as place:
        for number, worker in enumerate(place.workers):
            worker.send(b"sum %d" % number)
            packet, source = place.switch.recvfrom(100)
            assert (packet, source) == (b"sum %d" % number, (f"{NET}.2", worker.getsockname()[1]))
            place.switch.sendto(b"result %d" % number, source)
            assert worker.recv(100) == b"result %d" % number
    assert place.counts == Counts(came=4)


def test_what_is_lost_does_not_arrive() -> None:
    with running(Weather(loss=1.0)) as place:
        for _ in range(10):
            place.workers[0].send(b"?")
    assert place.counts is not None
    assert place.counts.lost == place.counts.came <= 10


def test_copies_and_packets_that_wait_arrive_later() -> None:
    weather = Weather(loss=0, copied=1.0, overtaken=0.5, kept=0.1, short_s=0.01, long_s=0.2)
    with running(weather) as place:
        for number in range(100):
            place.workers[0].send(b"%d" % number)
        came = [int(place.switch.recv(100)) for _ in range(200)]
    assert sorted(came) == sorted([*range(100), *range(100)])
    assert came != sorted(came)
    assert place.counts is not None
    assert (place.counts.came, place.counts.copied) == (100, 100)
    assert place.counts.overtaken > 0
    assert place.counts.kept > 0


@pytest.mark.parametrize("seed", [1, 2])
def test_a_seed_s_weather_is_its_own(seed: int) -> None:
    def drawn(dice: random.Random) -> list[list[float]]:
        return [Weather().delays_s(dice) for _ in range(5000)]

    assert drawn(random.Random(seed)) == drawn(random.Random(seed))
    found = drawn(random.Random(seed))
    assert 20 < sum(not delays for delays in found) < 90  # 1 %
    assert 20 < sum(len(delays) == 2 for delays in found) < 90
    assert max(max(delays) for delays in found if delays) <= 1.0
