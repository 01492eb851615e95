"""A queue of a known length before a link: what it lets in, marks and drops."""

from __future__ import annotations

import socket
import struct
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from ina import netns
from ina.bench import bpf
from ina.bench.bpf import BpfError, Label, Step, Wide
from ina.bench.marking_queue import Counts, MarkingQueue, QueueCounts
from ina.bench.queue_watch import QueueWatch
from ina.netns import End, ip
from tests.worlds.processes.emulations import need

PAYLOAD_BYTES = 958
FRAME_BYTES = PAYLOAD_BYTES + 42
ARP_BYTES = 100
"""And more: the first packet of all asks where the others go."""
RATE_BIT_S = 8.0 * FRAME_BYTES


def test_jumps_and_wide_loads_are_as_the_kernel_has_them() -> None:
    program: list[Step | Label | Wide] = [
        Step(bpf.MOVE_NOW, 0, value=-1),
        Step(bpf.IF_EQUAL_NOW, 0, value=7, to="end"),
        Wide(4, 0x1_0000_0002),
        Wide(1, 9, is_map=True),
        Label("end"),
        Step(bpf.STORE, 10, 4, -16),
        Step(bpf.EXIT),
    ]
    words = [struct.unpack("<BBhi", it) for it in batches(bpf.assembled(program))]
    assert words == [
        (bpf.MOVE_NOW, 0, 0, -1),
        (bpf.IF_EQUAL_NOW, 0, 4, 7),
        *((0x18, 4, 0, 2), (0, 0, 0, 1)),
        *((0x18, 0x11, 0, 9), (0, 0, 0, 0)),
        (bpf.STORE, 0x4A, -16, 0),
        (bpf.EXIT, 0, 0, 0),
    ]


def batches(code: bytes) -> list[bytes]:
    return [code[at : at + 8] for at in range(0, len(code), 8)]


@contextmanager
def link() -> Iterator[tuple[End, socket.socket, socket.socket]]:
    """A link's end, a socket there, and one at the other end, which is told of each TOS."""
    need("soft")
    names = [f"ina{uuid.uuid4().hex[:6]}{side}" for side in "ab"]
    here, there = (End(name, "eth0") for name in names)
    for name in names:
        netns.add_host(name)
    try:
        netns.add_pairs([(here, there)])
        sockets = []
        for end, address in ((here, "10.9.0.1"), (there, "10.9.0.2")):
            ip(end.space, "addr", "add", f"{address}/24", "dev", end.interface)
            ip(end.space, "link", "set", end.interface, "up")
        for end, address in ((here, "10.9.0.1"), (there, "10.9.0.2")):
            with netns.inside(end.space):
                sockets.append(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                sockets[-1].bind((address, 700))
        one, other = sockets
        other.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        other.settimeout(10)
        one.connect(("10.9.0.2", 700))
        with closing(one), closing(other):
            yield here, one, other
    finally:
        for name in names:
            netns.delete(name)


@contextmanager
def queue(end: End, burst: int, room: int, mark: int) -> Iterator[MarkingQueue]:
    """Of so many frames, until the block ends."""
    try:
        made = MarkingQueue(
            *(end, RATE_BIT_S, burst * FRAME_BYTES, room * FRAME_BYTES + ARP_BYTES),
            mark * FRAME_BYTES + ARP_BYTES if mark else 0,
        )
    except BpfError as error:
        pytest.skip(f"needs a kernel with BPF and TCX (Linux 6.6): {error}")
    with closing(made):
        yield made


@pytest.mark.parametrize("ecn", [0, 2])
def test_what_comes_at_once_is_let_in_marked_and_dropped(ecn: int) -> None:
    """A packet takes the link a second: no other one leaves meanwhile."""
    with link() as (end, one, other):
        one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 40 | ecn)
        with queue(end, 10, 40, 20) as made:
            for _ in range(80):
                one.send(bytes(PAYLOAD_BYTES))
            tos = [other.recvmsg(2000, 64)[1][0][2][0] for _ in range(50)]
            look = made.look()
        marked = 50 - 31 if ecn else 0  # whose queue was longer than 20, beside the burst of 10
        assert look.udp == Counts(50, 50 * FRAME_BYTES, marked, 30)
        assert look.longest_bytes == pytest.approx(40 * FRAME_BYTES, abs=FRAME_BYTES)
        assert tos == [40 | ecn] * (50 - marked) + [40 | 3] * marked
        one.send(bytes(PAYLOAD_BYTES))  # nobody stands in its way any more
        assert len(other.recv(2000)) == PAYLOAD_BYTES


def test_a_queue_without_a_threshold_marks_nothing() -> None:
    with link() as (end, one, other), queue(end, 1, 40, 0) as made:
        one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 2)
        for _ in range(30):
            one.send(bytes(PAYLOAD_BYTES))
        assert {other.recvmsg(2000, 64)[1][0][2][0] for _ in range(30)} == {2}
        assert made.look().udp.marked == 0


def test_an_interface_that_is_not_there_is_told_in_one_line() -> None:
    need("soft")
    with pytest.raises(Exception, match="no such interface nowhere") as caught:
        MarkingQueue(End(None, "nowhere"), RATE_BIT_S, 1, 1, 0)
    assert isinstance(caught.value, BpfError)


def test_a_watch_tells_what_went_through_between_any_times() -> None:
    class Steady:
        """A packet of 10 bytes for each look; nobody waits."""

        def __init__(self) -> None:
            self.looks = 0

        def look(self) -> QueueCounts:
            self.looks += 1
            counts = Counts(self.looks, 10 * self.looks, 0, 0)
            return QueueCounts(counts, Counts(0, 0, 0, self.looks), self.looks, 9)

    steady = Steady()
    with QueueWatch(steady) as watch:  # type: ignore[arg-type]
        while steady.looks < 12:
            pass
    at_s = [at for at, _ in watch._looks]
    whole, half = watch.between([at_s[0], at_s[10]]), watch.between([at_s[2], at_s[6], at_s[7]])
    assert whole[0].udp == Counts(10, 100, 0, 0)
    assert whole[0].rest.dropped == 10
    assert whole[0].waiting_bytes == tuple(range(1, 11))
    assert [it.udp.bytes for it in half] == [40, 10]
