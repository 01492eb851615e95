"""Small operations are worked on by the thread that submits them and waits for them."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina._native.congestion import Choice
from ina._native.host import Operation, OperationState, RtoLimits, Transport
from ina.protocol.codec import Header, decode, encode
from ina.protocol.collective import Collective
from ina.protocol.spec import Flag, Kind, ValueType
from tests.host.sockets import DEADLINE_S, forbid_call, in_a_thread, until
from tests.worlds.processes.threads import NewThreads
from tests.worlds.virtual.cores import worker_config

VALUES, WINDOW = 64, 32
LATE_S = 0.02
"""So long everybody has come to rest."""
NS = 1_000_000_000


@dataclass
class Switch:
    """Of a job of one worker, whose packets it answers a little later, but for some."""

    rto_ns: int
    late_s: float = LATE_S
    ignores: Callable[[Header], bool] = lambda _: False
    heard: list[Header] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.new = NewThreads()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        config = worker_config(0, 1, 2 * WINDOW, VALUES, keep_results=True)
        config.rto = RtoLimits(initial_ns=self.rto_ns, min_ns=self.rto_ns, max_ns=self.rto_ns)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as worker:
            worker.connect(self._socket.getsockname())
            self.transport = Transport.udp(worker.fileno(), config, 1 << 20)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()
        self._arrays: list[np.ndarray[tuple[int], np.dtype[np.int32]]] = []

    def _serve(self) -> None:
        while not self._is_over.is_set():
            try:
                packet, worker = self._socket.recvfrom(2048)
            except TimeoutError:
                continue
            header, values = decode(packet)
            self.heard.append(header)
            if self.ignores(header):
                continue
            time.sleep(self.late_s)
            result = replace(header, kind=Kind.RESULT, flags=Flag(0), contributors=1, worker=0)
            self._socket.sendto(encode(result, values), worker)

    def submit(self, packets: int = 1) -> Operation:
        array = np.arange(packets * VALUES, dtype=np.int32)
        self._arrays.append(array)
        what = Collective(ValueType.INT32, array.size)
        return self.transport.submit(array.ctypes.data, array.ctypes.data, what)

    def turns(self) -> int:
        """How often the session's own thread has gone to sleep."""
        status = Path(f"/proc/self/task/{self.thread}/status").read_text()
        return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])

    def sleeps(self) -> bool:
        """Whether its thread does so, whenever one looks."""
        status = Path(f"/proc/self/task/{self.thread}/status")
        looks = []
        for _ in range(10):
            time.sleep(0.001)
            looks.append("State:\tS" in status.read_text())
        return all(looks)

    @property
    def thread(self) -> int:
        return self.new.only("ina-worker")

    def close(self) -> None:
        self.transport.close()
        self._is_over.set()
        self._thread.join(DEADLINE_S)
        self._socket.close()


@contextmanager
def switch(rto_ns: int = 60 * NS, **options: Any) -> Iterator[Switch]:
    made = Switch(rto_ns, **options)
    try:
        time.sleep(LATE_S)  # its thread sleeps
        yield made
    finally:
        made.close()


def test_a_small_operation_needs_no_other_thread() -> None:
    with switch() as one:
        before = one.turns()
        for _ in range(20):
            operation = one.submit()
            assert operation.wait(60 * NS)
            assert operation.state == OperationState.DONE
        assert one.turns() - before <= 2  # if it read them, it would sleep after each
    assert len(one.heard) == 20


def test_who_does_not_wait_has_it_done() -> None:
    with switch() as one:
        before = one.turns()
        operation = one.submit()
        until(lambda: operation.state == OperationState.DONE)
        assert one.turns() > before


def test_a_large_one_is_the_sessions_threads() -> None:
    """It lets others run first, and the caller may have something better to do."""
    with switch(late_s=0) as one:
        before = one.turns()
        operation = one.submit(20 * WINDOW)
        assert operation.wait(60 * NS)
        assert one.turns() - before > 5
        assert (one._arrays[0] == np.arange(20 * WINDOW * VALUES)).all()


@pytest.mark.parametrize("waits", [True, False])
def test_what_is_lost_is_sent_again(waits: bool) -> None:
    with switch(5_000_000, late_s=0, ignores=lambda header: header.copy < 3) as one:
        operation = one.submit()
        if waits:
            assert operation.wait(60 * NS)
        else:
            until(lambda: operation.state == OperationState.DONE)
        assert one.transport.stats().worker.tensors_done == 1
    assert [header.copy for header in one.heard[:4]] == [0, 1, 2, 3]


def test_on_a_kernel_without_epoll_pwait2() -> None:
    """Before Linux 5.11, and in a sandbox."""

    def work() -> None:
        forbid_call(441)
        with switch(5_000_000, late_s=0, ignores=lambda header: header.copy < 2) as one:
            for packets in (1, 5):
                operation = one.submit(packets)
                until(lambda: operation.state == OperationState.DONE)  # noqa: B023
            assert one.submit(5).wait(60 * NS)
            until(one.sleeps)  # it does not go round and round

    in_a_thread(work)


def test_a_wait_that_is_over_returns_and_the_session_goes_on() -> None:
    with switch() as one:
        operation = one.submit()
        assert not operation.wait(NS // 1000)
        until(lambda: operation.state == OperationState.DONE)


def test_several_may_wait() -> None:
    """One does the work; the others, and those who come later, hear of it."""
    with switch() as one:
        operations = [one.submit() for _ in range(6)]
        ended = [False] * len(operations)

        def wait(number: int) -> None:
            ended[number] = operations[number].wait(60 * NS)

        threads = [threading.Thread(target=wait, args=[number]) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(DEADLINE_S)
        assert ended == [True] * 6


@pytest.mark.parametrize("end", ["close", "fail", "freeze", "remap"])
def test_who_waits_is_in_nobodys_way(end: str) -> None:
    with switch(ignores=lambda _: True) as one:
        operation = one.submit()
        waited: list[bool] = []
        thread = threading.Thread(target=lambda: waited.append(operation.wait(20 * NS)))
        thread.start()
        time.sleep(LATE_S)
        began_s = time.monotonic()
        if end == "close":
            in_a_thread(one.transport.close)
        elif end == "fail":
            one.transport.fail()
        elif end == "freeze":
            assert one.transport.freeze()
            one.transport.close()
        else:
            config = worker_config(0, 1, WINDOW, VALUES, keep_results=True)
            config.epoch += 1
            one.transport.begin_remap(config, 0, Choice("fixed"))
            one.transport.close()
        assert time.monotonic() - began_s < 10  # of the 20 that it would wait
        thread.join(DEADLINE_S)
    assert waited == [True]
    wanted = OperationState.FAILED if end == "fail" else OperationState.CLOSED
    assert operation.state == wanted


def test_work_that_comes_while_somebody_waits_is_done() -> None:
    """By the session's thread, whether it is much or little; the one who waits waits on."""
    with switch(late_s=0, ignores=lambda header: header.seq == 0) as one:
        first = one.submit()
        waited: list[bool] = []
        thread = threading.Thread(target=lambda: waited.append(first.wait(NS // 5)))
        thread.start()
        time.sleep(LATE_S)
        assert one.submit(WINDOW // 2).wait(60 * NS)
        assert one.submit().wait(60 * NS)
        thread.join(DEADLINE_S)
        assert waited == [False]
        assert first.state == OperationState.PENDING


def test_a_forked_child_leaves_the_packets_alone() -> None:
    with switch() as one:
        operation = one.submit()
        child = os.fork()
        if child == 0:
            os._exit(int(operation.wait(NS // 10)))
        assert operation.wait(60 * NS)
        assert os.waitpid(child, 0)[1] == 0
