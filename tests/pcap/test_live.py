"""Captures of real switches: BMv2's own, dumpcap's on the soft switch's interfaces and on lo."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ina.cli.pcap.read import CaptureFiles
from ina.controller.embedded import Embedded
from ina.host import Session
from ina.netns import within
from ina.p4 import names
from ina.pcap import Packet, follow
from ina.pcap.sends import Icrc
from ina.protocol.emit import ROOT
from ina.protocol.spec import UDP_PORT, Flag, Kind
from tests.pcap.on_switch import JOB, WORKERS
from tests.selection import LONG
from tests.worlds.processes.both_switches import GRPC_ADDR, lab
from tests.worlds.processes.stand_ins import python

DEADLINE_S = 60.0
needs_dumpcap = pytest.mark.skipif(
    shutil.which("dumpcap") is None or os.geteuid() != 0,
    reason="needs root and dumpcap: apt-get install wireshark-common",
)


def read(paths: list[Path], port: int = UDP_PORT) -> list[Packet]:
    return list(CaptureFiles(paths, [port]).packets())


@contextlib.contextmanager
def dumpcap(prefix: list[str], interfaces: list[str], *options: str) -> Iterator[None]:
    """Captures while the block runs. Where nothing can be captured, the test is skipped."""
    chosen = [word for name in interfaces for word in ("-i", name)]
    process = subprocess.Popen(
        [*prefix, "dumpcap", "-q", *chosen, *options], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = ""
    while "File: " not in said:
        line = process.stderr.readline()
        if not line:
            pytest.skip(f"dumpcap cannot capture here: {said}")
        said += line
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=DEADLINE_S)


def wait_until(condition: Callable[[], bool]) -> None:
    """dumpcap writes what it has captured a little later."""
    until_s = time.monotonic() + DEADLINE_S
    while not condition() and time.monotonic() < until_s:
        time.sleep(0.5)


def exchange(namespace_prefix: list[str]) -> int:
    """Runs on_switch in the namespace; returns how many results the workers got."""
    done = subprocess.run(
        [*namespace_prefix, python(), "-m", "tests.pcap.on_switch", GRPC_ADDR],
        capture_output=True, text=True, timeout=120, check=False, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def check(packets: list[Packet]) -> None:
    """The story of on_switch, however its packets were captured."""
    (life,) = follow(packets, JOB, 1)
    told = [e.what for e in life.events if e.header.kind is Kind.CONTRIBUTION]
    assert told == [
        "takes the slot",
        "joins",
        "is in already: dropped",
        "joins, as the last: the result goes to all",
        "asks again: the result goes to it alone",
        "takes the slot",
        "stale: dropped",
    ]
    assert [e.note for e in life.events if e.note] == []
    assert life.workers == list(range(WORKERS))
    first, second = life.rounds
    assert dict(first.results) == {0: 1, 1: 2, 2: 1}
    assert (first.complete, second.missing) == (True, [1, 2])
    result = next(p for p in packets if p.header and p.header.kind is Kind.RESULT)
    assert result.values is not None
    assert set(result.values.tolist()) == {1 + 2 + 3}


def test_bmv2_captures_by_itself(tmp_path: Path) -> None:
    with lab("bmv2", WORKERS, bmv2_options=(f"--pcap={tmp_path}",)) as network:
        assert exchange(within(network.namespace, [])) == 4
        files = sorted(tmp_path.glob("*.pcap"))
        assert len(files) == 2 * WORKERS
        check(read(files))


@needs_dumpcap
def test_dumpcap_on_the_soft_switch(tmp_path: Path) -> None:
    file = tmp_path / "soft.pcapng"
    with lab("soft", WORKERS) as network:
        prefix = within(network.namespace, [])
        with dumpcap(prefix, list(network.switch_ends.values()), "-w", str(file)):
            assert exchange(prefix) == 4
            wait_until(lambda: len(read([file])) >= 11)
    packets = read([file])
    assert {p.frame.source for p in packets} == {
        f"soft.pcapng:{end}" for end in network.switch_ends.values()
    }
    check(packets)


@needs_dumpcap
@pytest.mark.parametrize(
    ("mode", "values"), [(names.POOL, 64), *([(names.ROCE, 56)] if LONG else [])]
)
def test_a_job_with_loss_on_loopback(mode: str, values: int, tmp_path: Path) -> None:
    """The host library, the controller and the soft switch, over sockets with UDP_SEGMENT; RoCEv2
    is in a tunnel there."""
    count, elems = 3, 20_000
    file = tmp_path / "lo.pcapng"
    with contextlib.ExitStack() as stack:
        embedded = stack.enter_context(Embedded(values, loss_rate=0.03, loss_seed=1, mode=mode))
        port = embedded.switch.udp_address(1)[1]
        options = ("-f", f"udp port {port}", "-B", "32", "-w", str(file))
        stack.enter_context(dumpcap([], ["lo"], *options))
        pool = stack.enter_context(ThreadPoolExecutor(count))
        join = lambda rank: Session.join(embedded.controller_addr, "seen", rank, count)  # noqa: E731
        sessions = [stack.enter_context(s) for s in pool.map(join, range(count))]
        parts = [np.full(elems, rank + 1, np.int32) for rank in range(count)]
        sums = pool.map(lambda session, part: session.all_reduce(part), sessions, parts)
        assert all((result == 6).all() for result in sums)
        job = sessions[0].ticket.job
        rounds = -(-elems // values)
        wait_until(lambda: _results(read([file], port)) >= rounds)
    packets = read([file], port)
    assert not any(packet.problem for packet in packets)
    assert {p.send and p.send.icrc for p in packets} == {Icrc.RIGHT if mode == names.ROCE else None}
    resends = [p for p in packets if p.header and p.header.flags & Flag.RESEND]
    assert resends, "nothing was lost"
    of_slots: dict[int, list[Packet]] = defaultdict(list)  # those that the sum needs
    for packet in packets:
        if packet.header is not None:
            of_slots[packet.header.slot].append(packet)
    lives = [follow(of_slots[slot], job, slot)[0] for slot in sorted(of_slots)]
    assert all(life.workers == [0, 1, 2] for life in lives)
    told = [round_ for life in lives for round_ in life.rounds]
    assert len(told) >= rounds
    assert all(round_.complete and not round_.missing for round_ in told)


def _results(packets: list[Packet]) -> int:
    return sum(p.header is not None and p.header.kind is Kind.RESULT for p in packets) // 3
