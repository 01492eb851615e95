"""One worker's packets to the switch and back, one at a time: the raw material of the path test."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ina.errors import InvalidInputError
from ina.p4.builds import packet_bytes, socket_mtu_bytes
from ina.protocol.codec import Header, decode, encode
from ina.protocol.spec import Kind

_IP_MTU_DISCOVER, _IP_PMTUDISC_DO = 10, 2  # linux/in.h
_RECEIVE_BYTES = 1 << 16
_HOPELESS = 5
"""Unanswered packets after which more would say nothing new."""


@dataclass
class Echo:
    """What became of some probes of one size."""

    value_count: int
    sent: int = 0
    answered: int = 0
    refused: int = 0
    """Answers of the other host's kernel: nobody has that UDP port."""
    too_long: int = 0
    """Packets that this host's kernel would not send: longer than the MTU it knows of."""
    unsent: str = ""
    """Another reason why a packet was not sent."""
    foreign: int = 0
    """Datagrams from the switch that were no result of a probe."""
    mtu_bytes: int = 0
    """The kernel's idea of the path's MTU afterwards; 0: none."""
    round_trips_s: list[float] = field(default_factory=list)

    @property
    def packet_bytes(self) -> int:
        """Size of one probe as an IP packet."""
        return packet_bytes(self.value_count)


class Prober:
    """A one-worker job's only worker. Each probe has a sequence number of its own, so it completes
    at once and is answered by its sum: itself."""

    def __init__(self, sock: socket.socket, job: int, epoch: int, slots: int) -> None:
        """``sock``: connected to the switch; stays the caller's."""
        self._sock = sock
        self._job, self._epoch, self._slots = job, epoch & 0xFFFF, slots
        self._seq = 0
        sock.setblocking(False)
        with contextlib.suppress(OSError):  # fragments would hide the MTU; and P4 drops them
            sock.setsockopt(socket.IPPROTO_IP, _IP_MTU_DISCOVER, _IP_PMTUDISC_DO)

    def echo(self, value_count: int, times: int, pause_s: float) -> Echo:
        """Sends ``times`` packets of ``value_count`` values, one at a time.

        Waits ``pause_s`` at most for each answer, and gives up early if none comes at all.
        """
        result = Echo(value_count)
        for _ in range(times):
            self._once(result, pause_s)
            if result.sent == _HOPELESS and not result.answered:
                break
        with contextlib.suppress(OSError):
            result.mtu_bytes = socket_mtu_bytes(self._sock)
        return result

    def _once(self, result: Echo, pause_s: float) -> None:
        self._seq += 1
        values = np.arange(result.value_count, dtype=np.int32) + self._seq
        header = Header(
            kind=Kind.CONTRIBUTION,
            job=self._job,
            epoch=self._epoch,
            slot=self._seq % self._slots,
            value_count=result.value_count,
            seq=self._seq,
            contributors=1,
        )
        sent_s = time.monotonic()
        result.sent += 1
        try:
            self._sock.send(encode(header, values))
        except OSError as error:
            if error.errno == errno.EMSGSIZE:
                result.too_long += 1
            elif error.errno == errno.ECONNREFUSED:  # the answer to an earlier packet
                result.refused += 1
            else:
                result.unsent = error.strerror or str(error)
            return
        while (left_s := sent_s + pause_s - time.monotonic()) > 0:
            if not select.select([self._sock], [], [], left_s)[0]:
                return
            try:
                payload = self._sock.recv(_RECEIVE_BYTES)
            except ConnectionRefusedError:
                result.refused += 1
                return
            except OSError as error:
                if error.errno == errno.EMSGSIZE:  # a router said so: fragmentation needed
                    result.too_long += 1
                else:
                    result.unsent = error.strerror or str(error)
                return
            if self._is_answer(payload, values):
                result.answered += 1
                result.round_trips_s.append(time.monotonic() - sent_s)
                return
            result.foreign += 1

    def _is_answer(self, payload: bytes, values: npt.NDArray[np.int32]) -> bool:
        try:
            header, summed = decode(payload)
        except InvalidInputError:
            return False
        return (
            header.kind is Kind.RESULT
            and (header.job, header.epoch, header.seq) == (self._job, self._epoch, self._seq)
            and np.array_equal(summed, values)
        )
