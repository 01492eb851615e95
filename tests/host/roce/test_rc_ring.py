"""A worker's queue pairs in a ring, over a device that is UDP sockets: two rings that lead to each
other, with no switch between them. ``there_it_is_seen`` runs in a process that has it."""

from __future__ import annotations

import os
import time
from ipaddress import IPv4Address

import pytest

from ina.extension.rdma import RcRing, RcRingChannel, RcRingPath
from tests.worlds.fakes.verbs import run_there

HERE = int(IPv4Address("127.0.0.1"))
LANES, MESSAGE_BYTES = 2, 1024
POSTED, FRAMES = 3, 4
"""Of a lane: that the device has at a time, and with one that waits for it."""
FIRST_PSN = 0xFF_FFFE


def ring() -> RcRing:
    return RcRing("fake0", 1, 1, LANES, MESSAGE_BYTES)


def path_to(other: RcRing) -> RcRingPath:
    """Before and behind."""
    return RcRingPath(
        next_ipv4=HERE,
        previous_ipv4=HERE,
        next_in=other.in_numbers,
        previous_out=other.out_numbers,
        first_psn=FIRST_PSN,
        timeout=18,
        retries=6,
    )


def pair() -> tuple[RcRingChannel, RcRingChannel]:
    one, other = ring(), ring()
    one.connect(path_to(other))
    other.connect(path_to(one))
    return RcRingChannel(one, LANES), RcRingChannel(other, LANES)


def message(seq: int, length: int = MESSAGE_BYTES) -> bytes:
    return (bytes(12) + seq.to_bytes(4, "big") + bytes([seq % 251]) * length)[:length]


def received(channel: RcRingChannel, count: int, sender: RcRingChannel) -> list[bytes]:
    """So many, by lane, unless none comes for ten seconds."""
    came: list[bytes] = []
    until = time.monotonic() + 10
    while len(came) < count:
        assert sender.receive(0) == []  # what is acknowledged makes room for what waits
        more = channel.receive(10)
        assert more or time.monotonic() < until, f"{len(came)} of {count}"
        came += more
    return sorted(came, key=lambda it: int.from_bytes(it[12:16], "big") % LANES)


def counted(channel: RcRingChannel) -> tuple[int, int, int]:
    it = channel.counters
    return it.send_drops, it.refused, it.spent


def lanes_go_round() -> None:
    """Either way, longer than there are frames and buffers, around the end of the numbers."""
    one, other = pair()
    for turn in range(3 * FRAMES):
        sent = [message(LANES * turn + lane, 64 + 4 * turn) for lane in range(LANES)]
        one.send(sent)
        one.send(sent)  # what the core sends again is the device's to repeat
        assert received(other, LANES, one) == sent
        other.send(sent[1:])
        assert received(one, 1, other) == sent[1:]
    while one.owes() or other.owes():  # what was acknowledged last is not looked at yet
        one.receive(10)
        other.receive(10)
    assert counted(one) == counted(other) == (0, 0, 0)


def one_waits_for_acknowledgements() -> None:
    """More than the device may have: none is lost, and the order stays."""
    os.environ["FAKE_VERBS_ACKS"] = str(POSTED)
    one, other = pair()
    sent = [message(LANES * turn) for turn in range(4 * POSTED)]
    came: list[bytes] = []
    for turn in range(0, len(sent), 2):
        one.send(sent[turn : turn + 2])
        until = time.monotonic() + 10
        while len(came) < turn + 2:
            assert time.monotonic() < until, f"{len(came)} of {turn + 2}"
            came += other.receive(10)
            one.receive(10)  # what is acknowledged makes room
    assert came == sent
    assert counted(one) == (0, 0, 0)
    os.environ["FAKE_VERBS_ACKS"] = "1000"
    one, other = pair()
    for it in sent[:POSTED]:
        one.send([it])
        assert received(other, 1, one) == [it]
    one.send(sent[POSTED : FRAMES + 1])
    assert counted(one) == (1, 0, 0)
    one.receive(0)
    assert one.owes()
    del os.environ["FAKE_VERBS_ACKS"]


def a_connection_that_gives_up_is_told() -> None:
    one, _ = pair()
    os.environ["FAKE_VERBS_FAILS"] = "acknowledge"
    one.send([message(0)])
    assert one.receive(10_000) == []
    assert (one.fd, counted(one), one.owes()) == (-1, (0, 1, 1), False)
    one.send([message(1)])
    assert counted(one) == (1, 1, 1)
    del os.environ["FAKE_VERBS_FAILS"]


def what_is_wrong_is_said() -> None:
    one, other = ring(), ring()
    with pytest.raises(ValueError, match="without a way"):
        RcRingChannel(one, LANES)
    with pytest.raises(ValueError, match="a queue pair of each kind for each lane"):
        one.connect(RcRingPath(next_in=[2], previous_out=[3]))
    one.connect(path_to(other))
    with pytest.raises(ValueError, match="of other lanes"):
        RcRingChannel(one, 2 * LANES)
    one.close()
    with pytest.raises(RuntimeError, match="are closed"):
        one.connect(path_to(other))
    with pytest.raises(RuntimeError, match="takes 1024 bytes a packet"):
        RcRing("fake0", 1, 1, LANES, 1028)
    for call, said in {
        "create_qp": "queue pairs for 2 lanes on fake0: ",
        "modify_qp": "nobody answers for the MAC address of 127.0.0.1 from fake0",
    }.items():
        os.environ["FAKE_VERBS_FAILS"] = call
        with pytest.raises(RuntimeError, match=said):
            ring().connect(path_to(other))


def there_it_is_seen() -> None:
    lanes_go_round()
    one_waits_for_acknowledgements()
    a_connection_that_gives_up_is_told()
    what_is_wrong_is_said()


def test_there() -> None:
    """All in one process: it takes longer to begin than to do this."""
    run_there(there_it_is_seen)
