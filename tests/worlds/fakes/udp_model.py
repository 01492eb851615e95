"""The reference switch model behind a UDP socket: slow, but every rule is the specification's."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from ipaddress import IPv4Address

from ina.congestion import Congestion
from ina.host import Session, Ticket, WorkerOptions
from ina.host.member.latch import OnFailure
from ina.host.udp import UdpLink
from ina.protocol.codec import encode
from ina.protocol.peer import Peer
from ina.protocol.spec import ALL_WORKERS, RESULTS_UDP_PORT
from ina.protocol.switch_model import Attachment, Departure, ModelJob, Sharing, SwitchModel
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.owners import of_workers

_MOST_LATE_S = 0.005


@contextmanager
def closing(sessions: list[Session]) -> Iterator[list[Session]]:
    try:
        yield sessions
    finally:
        for session in sessions:
            session.close()


class UdpModel:
    """Serves one SwitchModel on 127.0.0.1; drops a seeded share of packets in both directions.

    `group`: an IPv4 multicast group; workers get results there, all at once. `mute`: what is sent
    there does not arrive. `spacing_s`: what a packet takes, so that those behind it queue.
    """

    def __init__(
        self,
        slots: int = 64,
        values: int = 64,
        *,
        loss: float = 0.0,
        seed: int = 0,
        group: str = "",
        spacing_s: float = 0.0,
    ) -> None:
        self.slots = slots
        self.values = values
        self.group = group
        self.mute = False
        self.model = SwitchModel(slots, values)
        self._loss = loss
        self._spacing_s, self._free_s = spacing_s, 0.0
        self._random = random.Random(seed)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.bind(("127.0.0.1", 0))
        self._socket.settimeout(0.05)
        self.address: tuple[str, int] = self._socket.getsockname()
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="udp-model")
        self._thread.start()

    def __enter__(self) -> UdpModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Be gone: its address refuses. Idempotent."""
        self._stopping.set()
        self._thread.join()
        self._socket.close()

    def sessions(
        self,
        count: int,
        *,
        op_timeout_s: float = 30.0,
        job: int = 7,
        recoverable: bool = False,
        on_failure: OnFailure | None = None,
        threads: Sequence[int] | None = None,
        congestion: Congestion | None = None,
    ) -> list[Session]:
        links = [UdpLink.open(Peer.at(self.address), "127.0.0.1") for _ in range(count)]
        self.install_ports(job, 1, [link.own.udp_port for link in links])
        for link in links:
            if self.group:
                link.listen(Peer.at((self.group, RESULTS_UDP_PORT)))
        return [
            Session(
                self.ticket(job, 1, rank, count),
                links[rank],
                WorkerOptions(
                    op_timeout_s=op_timeout_s,
                    recoverable=recoverable,
                    on_failure=on_failure,
                    threads=threads[rank] if threads else 1,
                    congestion=congestion,
                ),
            )
            for rank in range(count)
        ]

    def install(self, job: int, epoch: int, sockets: Sequence[socket.socket]) -> None:
        self.install_ports(job, epoch, [sock.getsockname()[1] for sock in sockets])

    def install_ports(
        self,
        job: int,
        epoch: int,
        udp_ports: Sequence[int],
        sharing: frozenset[int] | None = None,
        slots: int = 0,
    ) -> None:
        """`sharing`: ranks that get results at the group, if there is one; by default all.

        `slots`: of the job; 0: all.
        """
        workers = tuple(Attachment(0, 0, port) for port in udp_ports)
        shared = frozenset(range(len(workers))) if sharing is None else sharing
        group = Sharing(shared, int(IPv4Address(self.group))) if self.group and shared else None
        with self._lock:
            self.model.install(
                ModelJob(
                    *(job, epoch, 0, slots or self.slots, workers, group),
                    strips=of_workers(len(workers)),
                )
            )

    def install_beside(self, job: int, epoch: int, first_slot: int, slots: int) -> None:
        """Another mapping of a job that there is."""
        with self._lock:
            now = self.model.jobs[job]
            self.model.install_beside(replace(now, epoch=epoch, first_slot=first_slot, slots=slots))

    def take_back(self, job: int, epoch: int) -> None:
        """The newer of its two mappings goes, and the one of this epoch stays."""
        with self._lock:
            self.model.jobs[job] = self.model.older.pop((job, epoch % (1 << 16)))

    def remove_older(self, job: int, epoch: int) -> None:
        with self._lock:
            self.model.remove_older(job, epoch)

    def ticket(self, job: int, epoch: int, rank: int, count: int) -> Ticket:
        return direct_ticket(
            "test", job, epoch, rank, count, self.slots, self.values, *self.address
        )

    def opened(self, payload: bytes, port: int) -> bytes:
        """Header and values of what came from a worker's UDP port."""
        return payload

    def sealed(self, departure: Departure) -> list[bytes]:
        """What is sent of a departing packet."""
        return [encode(departure.header, departure.values)]

    def _lost(self) -> bool:
        return self._random.random() < self._loss

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                payload, (_, port) = self._socket.recvfrom(65536)
            except (TimeoutError, ConnectionError):
                continue
            self._receive(payload, port)

    def _receive(self, payload: bytes, port: int) -> None:
        if self._lost():
            return
        if self._spacing_s:
            # Who slept for too long, on a busy machine, makes up for it.
            now_s = time.monotonic()
            self._free_s = max(self._free_s, now_s - _MOST_LATE_S) + self._spacing_s
            time.sleep(max(0.0, self._free_s - now_s))
        with self._lock:
            departures = self.model.receive(Attachment(0, 0, port), self.opened(payload, port))
        for departure in departures:
            if self._lost():
                continue
            for packet in self.sealed(departure):
                if departure.header.worker != ALL_WORKERS:
                    self._socket.sendto(packet, ("127.0.0.1", departure.to.udp_port))
                elif not self.mute:
                    self._socket.sendto(packet, (self.group, departure.to.udp_port))
