"""Trees of reference switches behind UDP sockets: each switch at an address of its own."""

from __future__ import annotations

import random
import selectors
import socket
import threading
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address

from ina.congestion import Congestion
from ina.host import Session, Ticket, WorkerOptions
from ina.host.udp import UdpLink
from ina.protocol.codec import encode
from ina.protocol.peer import Peer
from ina.protocol.switch_model import Attachment
from tests.worlds.virtual.trees import Forest, Node

_WORKERS = "127.0.0.1"
_NETWORK = int(IPv4Address("127.0.1.0"))
EPOCH = 5


class UdpForest:
    """Use it as a context manager. `loss`: of packets, at each switch, both ways."""

    def __init__(
        self,
        trees: Sequence[Node],
        lanes: Sequence[int],
        values: int = 64,
        *,
        loss: float = 0.0,
        seed: int = 0,
        later: Sequence[Node] = (),
    ) -> None:
        """`later`: trees whose switches a job may move to."""
        self.trees, self.lanes, self.values = trees, lanes, values
        self._random, self._loss = random.Random(seed), loss
        self.sockets: dict[str, socket.socket] = {}
        for tree in (*trees, *later):
            for name in _names(tree):
                if name not in self.sockets:
                    self.sockets[name] = self._bound(len(self.sockets) + 1)
        self.forest: Forest | None = None
        self.epoch = EPOCH
        self._stop, self._stopping = socket.socketpair()
        self._thread = threading.Thread(target=self._serve, name="udp-forest")

    @staticmethod
    def _bound(number: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        sock.bind((str(IPv4Address(_NETWORK + number)), 0))
        return sock

    def __enter__(self) -> UdpForest:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.close()
        self._thread.join()
        for sock in (*self.sockets.values(), self._stopping):
            sock.close()

    def sessions(
        self,
        workers: int,
        threads: Sequence[int] = (1,),
        congestion: Congestion | None = None,
    ) -> list[Session]:
        """One of each rank, with so many threads, in turns."""
        first = dict(_first_nodes(self.trees[0]))
        links = [
            UdpLink.open(Peer.at(self._switch(first[rank])), _WORKERS) for rank in range(workers)
        ]
        self.forest = Forest(
            self.trees, self.lanes, self.values,
            lambda name: _address(self.sockets[name]),
            lambda rank: _attachment(links[rank].own.place),
            epoch=EPOCH,
        )  # fmt: skip
        return [
            Session(
                self.ticket(rank, workers),
                link,
                WorkerOptions(threads=threads[rank % len(threads)], congestion=congestion),
            )
            for rank, link in enumerate(links)
        ]

    def _switch(self, name: str) -> tuple[str, int]:
        host, port = self.sockets[name].getsockname()
        return host, port

    def grow(
        self, trees: Sequence[Node], lanes: Sequence[int], *, first_job: int, epoch: int
    ) -> None:
        """Trees for another mapping of the job; tickets are from now on for these."""
        assert self.forest is not None
        self.forest.grow(trees, lanes, first_job=first_job, epoch=epoch)
        self.lanes, self.epoch = lanes, epoch

    def ticket(self, rank: int, workers: int) -> Ticket:
        assert self.forest is not None
        places = tuple(self.forest.places[rank])
        return Ticket(
            "forest", self.epoch, rank, workers, 2 * sum(self.lanes), self.values,
            trees=places, verify="accidents",
        )  # fmt: skip

    def _serve(self) -> None:
        with selectors.DefaultSelector() as selector:
            for name, sock in self.sockets.items():
                selector.register(sock, selectors.EVENT_READ, name)
            selector.register(self._stopping, selectors.EVENT_READ)
            while True:
                for key, _ in selector.select():
                    if key.data is None:
                        return
                    self._receive(key.data)

    def _receive(self, name: str) -> None:
        sock = self.sockets[name]
        try:
            payload, source = sock.recvfrom(65536)
        except ConnectionError:
            return
        if self.forest is None or self._random.random() < self._loss:
            return
        for leaving in self.forest.switches[name].receive(_attachment(source), payload):
            if self._random.random() >= self._loss:
                to = (str(IPv4Address(leaving.to.ipv4)), leaving.to.udp_port)
                sock.sendto(encode(leaving.header, leaving.values), to)


def _names(node: Node) -> Iterator[str]:
    yield node.name
    for child in node.children:
        if isinstance(child, Node):
            yield from _names(child)


def _first_nodes(node: Node) -> Iterator[tuple[int, str]]:
    for child in node.children:
        if isinstance(child, Node):
            yield from _first_nodes(child)
        else:
            yield child, node.name


def _attachment(address: tuple[str, int]) -> Attachment:
    return Attachment(0, int(IPv4Address(address[0])), address[1])


def _address(sock: socket.socket) -> Attachment:
    return _attachment(sock.getsockname())
