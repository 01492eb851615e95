"""Queue pairs of one RDMA device that send each other messages, to see whether it can."""

from __future__ import annotations

from types import TracebackType

from ina.extension.rdma import RcRing, RcRingChannel, RcRingPath, RoceChannel, UcQueue
from ina.host.errors import TransportError
from ina.host.rdma import RdmaPatience, RdmaPlace

MESSAGES = 8
"""Of a try; each fills a packet."""
_WAIT_MS = 1000
_JUMPED_PSN = 0x80_0000
_ECT0 = 2


class RdmaLoopback:
    """The pair; what it made ends with its ``with``."""

    def __init__(self, place: RdmaPlace, ipv4: int) -> None:
        """`ipv4`: the address of the device there. Raises TransportError."""
        self._ipv4 = ipv4
        self._message = bytes(i % 251 for i in range(place.active_mtu_bytes))
        self._queues: list[UcQueue] = []
        self._channels: list[RoceChannel] = []
        try:
            for _ in range(2):
                self._queues.append(
                    UcQueue(place.device, place.port, place.gid_index, MESSAGES, len(self._message))
                )
        except RuntimeError as error:
            self._close()
            raise TransportError(str(error)) from None

    def __enter__(self) -> RdmaLoopback:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    @property
    def numbers(self) -> list[int]:
        """Of the queue pairs."""
        return [queue.number for queue in self._queues]

    def connect(self) -> None:
        """To each other; one begins with the packet number that is waited for, the other does not.

        Raises TransportError.
        """
        plain, jumping = self._queues
        try:
            plain.connect(self._ipv4, jumping.number, 0, _ECT0)
            jumping.connect(self._ipv4, plain.number, _JUMPED_PSN, _ECT0)
        except RuntimeError as error:
            raise TransportError(str(error)) from None
        self._channels = [RoceChannel(queue) for queue in self._queues]

    def came(self, *, jump: bool = False) -> int:
        """How many of some messages arrive unharmed, each waited for at most a second.

        `jump`: from the one that begins with another number.
        """
        sender, receiver = reversed(self._channels) if jump else self._channels
        sender.send([self._message] * MESSAGES)
        came = 0
        while came < MESSAGES:
            messages = receiver.receive(_WAIT_MS)
            if not messages:
                break
            came += messages.count(self._message)
        return came

    def _close(self) -> None:
        for queue in self._queues:
            queue.close()


def came_round(place: RdmaPlace, ipv4: int) -> int:
    """How many of some messages arrive in order on reliable connections, of a ring of two.

    Each, and its acknowledgement, is waited for at most a second or two. `ipv4`: the address of
    the device there. Raises TransportError.
    """
    rings: list[RcRing] = []
    try:
        for _ in range(2):
            rings.append(
                RcRing(place.device, place.port, place.gid_index, 1, place.active_mtu_bytes)
            )
        for one, other in (rings, reversed(rings)):
            one.connect(_path_to(other, ipv4))
        sender, receiver = (RcRingChannel(ring, 1) for ring in rings)
        for number in range(MESSAGES):
            message = bytes([number] * place.active_mtu_bytes)
            sender.send([message])
            if receiver.receive(_WAIT_MS) != [message] or not _is_acknowledged(sender):
                return number
        return MESSAGES
    except RuntimeError as error:
        raise TransportError(str(error)) from None
    finally:
        for ring in rings:
            ring.close()


def _is_acknowledged(sender: RcRingChannel) -> bool:
    for _ in range(2):  # the first event may be an old one's
        if sender.owes():
            sender.receive(_WAIT_MS)
    return not sender.owes()


def _path_to(ring: RcRing, ipv4: int) -> RcRingPath:
    usual = RdmaPatience()
    return RcRingPath(
        next_ipv4=ipv4,
        previous_ipv4=ipv4,
        next_in=ring.in_numbers,
        previous_out=ring.out_numbers,
        first_psn=_JUMPED_PSN,
        traffic_class=_ECT0,
        timeout=usual.exponent,
        retries=usual.retries,
    )
