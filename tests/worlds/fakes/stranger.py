"""Contributions by the thousand for a job that runs, from where none of its workers is.

Everything that is sent is in a ledger, and so is everything that the switch says became of it.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ina.controller.app import ControllerApp
from ina.controller.config import Config
from ina.host import Session, WorkerOptions
from ina.host import udp as host_udp
from ina.protocol.codec import Header, encode_header
from ina.protocol.peer import Peer
from ina.protocol.spec import Kind, ValueType
from ina.switch.server import SoftSwitch
from tests.security.jobs import SummingJob
from tests.worlds.processes.namespaces import Host

T = TypeVar("T")

VALUES = 64
WORKERS = 2
DEADLINE_S = 120.0
AT_A_TIME = 100
PAUSE_S = 0.0005
"""After so many packets, so that most find room in the switch's receive buffer."""


class Scene:
    """A soft switch and its controller in this process."""

    def __init__(self, switch: SoftSwitch, app: ControllerApp, run: Callable[..., Any]) -> None:
        self.switch, self.app, self._run = switch, app, run

    def counted(self) -> Counter[str]:
        """Packets by what the program did with them: ``drops NAME``, and the jobs' counters."""
        shown = self._run(self.app.show())
        found: Counter[str] = Counter()
        for counter in shown.counters:
            name = counter.name if counter.name != "drops" else f"drops {counter.label}"
            found[name] += counter.packets
        return found

    def kernel_drops(self) -> int:
        return sum(port.kernel_drop_packets for port in self.switch.stats().ports.values())


@contextmanager
def scene(switch: SoftSwitch, config: Callable[[str], Config]) -> Iterator[Scene]:
    """Starts both; ``config`` is told the switch's P4Runtime address."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    def run(what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, loop).result(DEADLINE_S)

    try:
        with switch:
            app = ControllerApp(config(switch.grpc_addr))
            run(app.__aenter__())
            try:
                yield Scene(switch, app, run)
            finally:
                run(app.__aexit__(None, None, None))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE_S)
        loop.close()


@contextmanager
def sessions(controller: str, hosts: Sequence[str | None]) -> Iterator[list[Session]]:
    """A job with a worker at each of these addresses."""
    with ExitStack() as stack, ThreadPoolExecutor(len(hosts)) as pool:

        def join(rank: int) -> Session:
            return Session.join(
                *(controller, "victim", rank, len(hosts)),
                options=WorkerOptions(
                    host=hosts[rank], timeout_s=DEADLINE_S, op_timeout_s=DEADLINE_S, threads=1
                ),
            )

        joined = list(pool.map(join, range(len(hosts))))
        for session in joined:
            stack.callback(session.close)
        yield joined


def socket_of(session: Session) -> socket.socket:
    """Another handle of the worker's own socket, which is connected to the switch."""
    link: Any = session._link
    own: socket.socket = link._socket
    return own.dup()


def contribution(session: Session, worker: int, ahead: int) -> bytes:
    """One of ``worker`` that this moment's slots would take, with values that would show."""
    ticket = session.ticket
    seq = session.stats().last_seq + 1 + ahead
    header = Header(
        kind=Kind.CONTRIBUTION,
        job=ticket.job,
        epoch=ticket.epoch & 0xFFFF,
        worker=worker,
        slot=seq % ticket.slots,
        value_type=ValueType.INT32,
        value_count=VALUES,
        seq=seq,
        contributors=1 << worker,
    )
    return encode_header(header) + np.full(VALUES, 1_000_000, ">i4").tobytes()


@dataclass(frozen=True)
class Stranger:
    """Somebody who sends what only ``worker`` may send, from another place."""

    name: str
    sock: socket.socket
    """Connected to the switch."""
    worker: int


def send(
    strangers: Sequence[Stranger], session: Session, packets: int, pause_s: float = PAUSE_S
) -> int:
    """So many contributions, by all of them in turn; returns how many the kernel took."""
    taken = 0
    while taken < packets:
        for stranger in strangers:
            forged = [contribution(session, stranger.worker, ahead) for ahead in range(8)]
            for number in range(min(AT_A_TIME, packets - taken)):
                try:
                    taken += stranger.sock.send(forged[number % len(forged)]) > 0
                except BlockingIOError:  # its own send buffer is full: it was not sent
                    break
            time.sleep(pause_s)
    return taken


@dataclass(frozen=True)
class Ledger:
    """What was sent to a switch, and what became of it."""

    by_strangers: int
    by_workers: int
    counted: Counter[str]
    kernel_drops: int
    """Found the switch's receive buffer full; whose packets they were nobody knows."""

    @property
    def admitted(self) -> int:
        """Packets of members, each in one of these."""
        return sum(self.counted[f"job_{what}"] for what in
                   ("contributions", "replays", "duplicates", "stale"))  # fmt: skip

    @property
    def refused(self) -> int:
        """By admission, for any reason: duplicates and stale packets have passed it."""
        drops = Counter({n: c for n, c in self.counted.items() if n.startswith("drops ")})
        return drops.total() - drops["drops duplicate"] - drops["drops stale"]

    @property
    def missing(self) -> int:
        """Packets that nothing has counted."""
        sent = self.by_strangers + self.by_workers
        return sent - self.admitted - self.refused - self.kernel_drops


def attack(
    scene: Scene,
    strangers: Sequence[Stranger],
    job: SummingJob,
    packets: int,
    *,
    pause_s: float = PAUSE_S,
) -> Ledger:
    """Sends, ends the job, and waits until everything that was sent is accounted for."""
    taken = send(strangers, job.sessions[0], packets, pause_s)
    assert job.finish() > 0
    deadline = time.monotonic() + DEADLINE_S
    while True:
        ledger = Ledger(
            taken,
            sum(session.stats().packets_sent for session in job.sessions),
            scene.counted(),
            scene.kernel_drops(),
        )
        if ledger.missing <= 0 or time.monotonic() > deadline:
            return ledger
        time.sleep(0.05)


SWITCH_ADDRESS, SWITCH_MAC, SWITCH_UDP_PORT = "10.77.0.254", "02:00:0a:4d:00:fe", 17760


def inside_of(machines: Sequence[Host]) -> Callable[..., socket.socket]:
    """Opens a worker's socket where its host is."""
    spaces = {host.address: host for host in machines}
    open_socket = host_udp.open_socket

    def opened(switch: Peer, own_host: str | None = None) -> socket.socket:
        assert own_host is not None
        with spaces[own_host].inside():
            return open_socket(switch, own_host)

    return opened
