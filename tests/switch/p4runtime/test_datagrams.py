"""Datagrams that nobody should send: 10^5 of them at the port, and the sums stay right."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from ina.protocol import codec
from ina.protocol.codec import Header
from ina.switch.server import SoftSwitch
from tests.switch.p4runtime.conftest import Connect
from tests.worlds.processes.pool import PORT, PoolJob, local_workers, pool_config

DATAGRAMS = 100_000
ROUNDS = 500
WORKERS = 3
VALUES = 64


@pytest.fixture
def jobs(switch: SoftSwitch, connect: Connect) -> Iterator[list[PoolJob]]:
    client = connect().become_primary()
    client.set_config(pool_config(VALUES))
    address = switch.udp_address(PORT)
    found = [PoolJob(address, client, local_workers(WORKERS), VALUES, job) for job in (1, 2)]
    yield found
    for job in found:
        job.close()


@pytest.fixture
def job(jobs: list[PoolJob]) -> PoolJob:
    return jobs[0]


def check_round(job: PoolJob, seq: int, rng: np.random.Generator) -> None:
    """One chunk of every worker; every worker gets the sum."""
    parts = rng.integers(-(2**28), 2**28, (WORKERS, VALUES), np.int32)
    for worker in range(WORKERS):
        job.send(worker, job.contribution(worker, seq, parts[worker]))
    for worker in range(WORKERS):
        header, values = job.result(worker)
        assert (header.seq, header.worker, header.contributors) == (seq, worker, 2**WORKERS - 1)
        np.testing.assert_array_equal(values, parts.sum(axis=0))


def mutated(rng: random.Random, good: bytes) -> bytes:
    """Noise, a cut, an extension, or a good packet with some bytes changed."""
    kind = rng.randrange(5)
    if kind == 0:
        return rng.randbytes(rng.randrange(0, 2000))
    if kind == 1:
        return good[: rng.randrange(len(good))]
    if kind == 2:
        return good + rng.randbytes(rng.randrange(1, 100))
    changed = bytearray(good)
    for _ in range(rng.randrange(1, 6)):
        changed[rng.randrange(24 if kind == 3 else len(changed))] = rng.randrange(256)
    return bytes(changed)


def test_strangers_change_no_sum(job: PoolJob, switch: SoftSwitch) -> None:
    """From addresses that are no worker's, between the workers' own packets."""
    rng, numbers = random.Random(20), np.random.default_rng(20)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        stranger.bind(("127.0.0.1", 0))
        for seq in range(ROUNDS):
            good = job.contribution(seq % WORKERS, seq, np.full(VALUES, 7, np.int32))
            for _ in range(DATAGRAMS // ROUNDS):
                stranger.sendto(mutated(rng, good), job.address)
            check_round(job, seq, numbers)
        stranger.setblocking(False)
        with pytest.raises(BlockingIOError):  # and nobody answered the stranger
            stranger.recv(65536)
    stats = switch.stats().ports[1]
    assert stats.kernel_drop_packets == 0
    assert stats.rx_packets == DATAGRAMS + ROUNDS * WORKERS
    assert sum(job.drops()) >= DATAGRAMS // 4  # those that looked like ina packets


def test_a_broken_worker_breaks_its_own_job_at_most(
    jobs: list[PoolJob], switch: SoftSwitch
) -> None:
    """What comes from a worker's own address is that worker's, so its job's sums may suffer."""
    rng = random.Random(21)
    broken, other = jobs
    sent = 0
    for round_ in range(100):
        for _ in range(DATAGRAMS // 400):
            good = broken.contribution(0, rng.randrange(100), np.full(VALUES, 7, np.int32))
            broken.send(0, mutated(rng, good))
            sent += 1
        check_round(other, round_, np.random.default_rng(round_))
        sent += WORKERS
    assert switch.stats().ports[1].rx_packets == sent


def test_replay_and_duplicates(job: PoolJob) -> None:
    """A contribution that comes again after completion is answered, to its worker alone."""
    check_round(job, 0, np.random.default_rng(1))
    again = Header(job=job.job, epoch=job.epoch, worker=1, value_count=VALUES, contributors=2)
    job.send(1, codec.encode(again, np.zeros(VALUES, np.int32)))
    header, _ = job.result(1)
    assert (header.seq, header.worker) == (0, 1)
    job.sockets[0].setblocking(False)
    with pytest.raises(BlockingIOError):
        job.sockets[0].recv(65536)
