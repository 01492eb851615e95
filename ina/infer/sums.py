"""A node's place in the job that sums a stage's parts: joined as any worker's, kept by heartbeats
in threads of their own, and worked on by the node's thread.
"""

from __future__ import annotations

import socket

from ina.errors import InaError
from ina.extension import infer as native
from ina.host.calls import switch_of
from ina.host.client import GrpcWire, process_name
from ina.host.link import SwitchLink, check_speaks, open_link
from ina.host.manner import Manner
from ina.host.member.client import ControllerClient
from ina.host.member.join import JoinRequest
from ina.host.member.session import Joined, SessionCore, join_by
from ina.host.node import NodePlace
from ina.host.options import WorkerOptions
from ina.host.own_host import RealHost
from ina.host.thread_driver import ThreadDriver
from ina.host.ticket import Ticket
from ina.infer.errors import ServiceError
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES
from ina.rpc import controller_pb2 as pb2

_OVERHEAD_BYTES = 1024  # of a packet in a socket's buffer, in the kernel's account, at most


class _Host(RealHost):
    """Over UDP, and with results of its own: what the node's thread reads is one socket."""

    def open(
        self, created: pb2.CreateJobReply, left_s: float
    ) -> tuple[SwitchLink, NodePlace | None]:
        check_speaks(self._who, "udp", created.mode)
        packet_bytes = HEADER_BYTES + VALUE_BYTES * created.values_per_packet
        packets = max(created.slots // 2, 1)
        link = open_link(
            self._who, "udp", switch_of(created), "", self._options.host, packets, packet_bytes
        )
        return link, None


class _Alone:
    """Results come to this worker alone: there is nothing to look after."""

    missing = False
    is_watched = False

    def look(self) -> bool:
        return False


class Summing:
    """One stage's. Leave it with :meth:`leave`, once the node's thread has ended."""

    def __init__(
        self, ticket: Ticket, link: SwitchLink, options: WorkerOptions,
        joined: Joined[SwitchLink], driver: ThreadDriver,
    ) -> None:  # fmt: skip
        """Raises ServiceError: the job is not one that a node can be a worker of."""
        self._link, self._driver, self._wire = link, driver, joined.client.wire
        manner = Manner.of(options, ticket, link)
        try:
            self.engine = native.SumEngine(
                manner.config(ticket),
                joined.grant.window,
                manner.choice(ticket),
                _room_packets(link, ticket.values_per_packet),
            )
        except ValueError as error:
            raise ServiceError(f"job {ticket.job_name!r} rank {ticket.rank}: {error}") from None
        self._core = SessionCore(self.engine, manner, driver, options, ticket, joined, _Alone())

    @classmethod
    def join(
        cls, controller: str, job: str, rank: int, world_size: int, options: WorkerOptions
    ) -> Summing:
        """Wait for all workers. Raises what Session.join() does, and ServiceError."""
        request = JoinRequest(job, rank, world_size, options)
        driver = ThreadDriver(f"{job}-{rank}")
        client = ControllerClient(GrpcWire(controller, driver, options.stop), process_name())

        def open_(joined: Joined[SwitchLink]) -> Summing:
            return cls(joined.grant.ticket, joined.grant.link, options, joined, driver)

        try:
            return driver.run(join_by(client, request, _Host(request), driver, open_))
        except BaseException:
            client.wire.close()
            raise

    @property
    def fd(self) -> int:
        """Of the socket that is connected to the switch."""
        return _socket_of(self._link).fileno()

    def error(self) -> InaError | None:
        """Why the sums do not come any more; None: they do."""
        return self._driver.run(self._core.latch.told())

    def leave(self) -> None:
        """The job, too; idempotent."""
        if self._core.closes():
            self._driver.run(self._core.leave(self.engine.close))
            self._wire.close()
            self._link.close()


def _socket_of(link: SwitchLink) -> socket.socket:
    found = getattr(link, "_socket", None)
    assert isinstance(found, socket.socket), "a link over UDP has a socket"
    return found


def _room_packets(link: SwitchLink, values: int) -> int:
    granted = _socket_of(link).getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    return max(granted // (HEADER_BYTES + VALUE_BYTES * values + _OVERHEAD_BYTES), 1)
