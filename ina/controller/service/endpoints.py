"""Where a worker says that it is, and what it says that runs on its host, checked."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import AddressValueError, IPv4Address

from ina import modes
from ina.controller.config import Config, SwitchConfig, device_rings_of, network_of, rings_of
from ina.controller.job import Job
from ina.controller.service.answers import printable
from ina.fabric.ports import PortRef
from ina.p4 import names
from ina.protocol.addresses import is_shm_address
from ina.protocol.bth import QP_BITS
from ina.protocol.peer import Peer
from ina.protocol.spec import MAX_WORKERS
from ina.rpc import controller_pb2 as pb2
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.slots import lanes_of
from ina.trees.tree import HostNode

MAX_PROCESS_CHARS = 300
"""A host name has at most 255."""


class DataPath:
    """How workers reach a switch."""

    def __init__(
        self, config: Config, switch: SwitchConfig, number: Callable[[PortRef], int]
    ) -> None:
        """``number``: of a port; raises :class:`SwitchError` where the switch knows no such."""
        self.switch = switch
        self._number = number
        self._endpoints = config.endpoints(switch)
        self._multicast = network_of(switch.multicast)
        self._rings = rings_of(switch.rings)
        self._device_rings = device_rings_of(switch.rings)

    def results_group(self, job: Job) -> IPv4Address | None:
        """Where workers of the job may listen; None: each gets its own results."""
        if self._multicast is None or not _is_udp(job):
            return None
        return self._multicast[job.number]

    def ring_address(self, job: Job, rank: int, own: IPv4Address) -> IPv4Address | None:
        """That a worker has in its ring; ``own``: that it says; None: its job has none."""
        if self._rings is None or not _in_ring(job):
            return None
        if self._device_rings is not None:
            first, last = self._device_rings
            if first <= own <= last:
                return own
        return self._rings[job.number * MAX_WORKERS + rank]

    def device_rings(self, job: Job) -> tuple[str, str]:
        """The first and the last address that RDMA devices have in rings; empty: none."""
        if self._device_rings is None or not _in_ring(job):
            return "", ""
        first, last = self._device_rings
        return str(first), str(last)

    def shm(self, job: Job) -> str:
        """Where workers of the job may attach to shared memory; empty: nowhere."""
        return self.switch.data_shm if _is_udp(job) else ""

    def endpoint(self, address: IPv4Address) -> tuple[int, int | None]:
        """The port that a worker is behind, and its MAC address (None: derived)."""
        port, mac = self._endpoints.get(address, (self.switch.data_port, None))
        return self._number(port), mac


def check_speaks(where: str, job: Job, slots: int, at: Endpoint) -> None:
    """Raise :class:`JobRequestError` where a worker has not what the job's packets go to.

    ``slots``: the job's.
    """
    has = bool(at.peer.queue_pair), len(at.peer.ring_pairs)
    in_ring = _in_ring(job)
    if in_ring and lanes_of(slots) > names.MAX_RING_LANES:
        raise JobRequestError(
            f"{where}: {slots} slots, and each two of a ring have connections of their own: at most"
            f" {2 * names.MAX_RING_LANES}"
        )
    wants = not _is_udp(job) and not in_ring, 2 * lanes_of(slots) if in_ring else 0
    if has != wants:
        raise JobRequestError(
            f"{where}: it has {_pairs_text(*has)}, and the job's mode {job.mode!r} wants"
            f" {_pairs_text(*wants)}"
        )


def _pairs_text(has_one: bool, in_ring: int) -> str:
    if in_ring:
        return f"{in_ring} queue pairs of a ring"
    return "a queue pair" if has_one else "no queue pair"


def _in_ring(job: Job) -> bool:
    return modes.of(job.mode).framing == "ring"


def _is_udp(job: Job) -> bool:
    return modes.of(job.mode).framing == modes.Mode.framing


def endpoint_of(request: pb2.JoinRequest, where: str, data: DataPath) -> Endpoint:
    """Of a worker that joins; ``where``: who it is, ``data``: the switch that it sends to.

    Raises :class:`JobRequestError`.
    """
    address = address_of(where, request.host)
    if address.is_unspecified or address.is_multicast:
        raise JobRequestError(f"{where}: host {address} is not one worker's address")
    if not 0 < request.udp_port < 1 << 16:
        raise JobRequestError(f"{where}: UDP port {request.udp_port} is not in 1..65535")
    for queue_pair in (request.queue_pair, *request.ring_pairs):
        if queue_pair >= 1 << QP_BITS:
            raise JobRequestError(f"{where}: queue pair {queue_pair} has more than 24 bits")
    process = printable(request.process, MAX_PROCESS_CHARS)
    node = _host_node(where, request, data) if request.HasField("node") else None
    runs = _aggregator(where, request, data) if request.HasField("aggregator") else None
    if node is None:
        port, mac = data.endpoint(address)
        port = request.switch_port or port
    else:
        port, mac = request.switch_port, None
    return Endpoint(
        Peer(address, request.udp_port, mac, request.queue_pair, tuple(request.ring_pairs)),
        port,
        process=process,
        switch=data.switch.name,
        node=node,
        aggregator=runs,
    )


def _host_node(where: str, request: pb2.JoinRequest, data: DataPath) -> HostNode:
    """What adds up on the worker's host."""
    said = request.node
    if said.rank > request.rank:
        raise JobRequestError(
            f"{where}: its host's node runs with rank {said.rank}: it is to be the lowest of"
            " those that send to it"
        )
    if not 0 < request.switch_port < 1 << 16:
        raise JobRequestError(f"{where}: it says no port of its host's node")
    return _on_host(f"{where}: its host's node", said, said.rank, data)


def _aggregator(where: str, request: pb2.JoinRequest, data: DataPath) -> HostNode:
    """What makes the job's results in the worker's process."""
    if request.rank != 0:
        raise JobRequestError(f"{where}: it runs an aggregator: rank 0 is to do that")
    return _on_host(f"{where}: its aggregator", request.aggregator, 0, data)


def _on_host(what: str, said: pb2.HostNode, rank: int, data: DataPath) -> HostNode:
    """A node in the process of ``rank``. Raises :class:`JobRequestError`, about ``what``."""
    address = address_of(what, said.host)
    if address.is_unspecified or address.is_multicast or is_shm_address(address):
        raise JobRequestError(f"{what}: host {address} is not one host's")
    for name, port in (("UDP port", said.udp_port), ("port", said.switch_port)):
        if not 0 < port < 1 << 16:
            raise JobRequestError(f"{what}: {name} {port} is not in 1..65535")
    port, mac = data.endpoint(address)
    return HostNode(rank, Peer(address, said.udp_port, mac), port, said.switch_port)


def address_of(where: str, text: str) -> IPv4Address:
    """What a worker says that some address is; raises :class:`JobRequestError`."""
    try:
        return IPv4Address(text)
    except AddressValueError:
        raise JobRequestError(f"{where}: host {text!r} is not an IPv4 address") from None
