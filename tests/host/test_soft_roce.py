"""Transport `roce-soft` against a switch that speaks RoCEv2 by Python's codec, as Scapy does."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import closing as closing_link
from dataclasses import replace

import numpy as np
import pytest

from ina.host import TransportError
from ina.host.link import check_speaks, open_roce_link
from ina.p4 import names
from ina.protocol.bth import Opcode
from ina.protocol.peer import Peer
from ina.protocol.roce import RoceFrame, psn_of
from tests.host.sockets import until
from tests.host.sums import reduce_all
from tests.worlds.fakes.roce_model import RoceModel, datagram
from tests.worlds.fakes.udp_model import closing

ELEMS = 64 * 40 + 5


def parts(count: int) -> list[np.ndarray[tuple[int], np.dtype[np.int32]]]:
    return [np.arange(ELEMS, dtype=np.int32) * (rank + 1) for rank in range(count)]


def reduce_over(
    switch: RoceModel, count: int = 2, rounds: int = 3, spoilt: Callable[[], int] = lambda: 0
) -> list[int]:
    """Sums are right; returns what each worker has counted as damaged, once that is `spoilt()`."""
    with closing(switch.roce_sessions(count)) as sessions:
        for _ in range(rounds):
            mine = parts(count)
            for result in reduce_all(sessions, mine):
                np.testing.assert_array_equal(result, np.sum(parts(count), axis=0, dtype=np.int32))
        until(lambda: sum(it.stats().damaged_results for it in sessions) >= spoilt())
        return [session.stats().damaged_results for session in sessions]


@pytest.mark.parametrize(("count", "loss"), [(1, 0.0), (3, 0.05)])
def test_each_packet_is_a_send_whose_icrc_is_right(count: int, loss: float) -> None:
    with RoceModel(loss=loss, seed=1) as switch:
        assert reduce_over(switch, count) == [0] * count
        sent = switch.frames
    assert len(sent) >= 3 * 41 * count
    for qp in {frame.bth.dest_qp for frame in sent}:
        psns = [frame.bth.psn for frame in sent if frame.bth.dest_qp == qp]
        steps = np.diff(psns)
        assert (steps > 0).all()
        assert loss > 0 or (steps == 1).all()


SPOILS: dict[str, Callable[[RoceFrame, random.Random], bytes]] = {
    "any bit": lambda frame, rng: flipped(datagram(frame), rng),
    "another queue pair": lambda frame, rng: datagram(
        replace(frame, bth=replace(frame.bth, dest_qp=frame.bth.dest_qp ^ 1 << rng.randrange(24)))
    ),
    "a middle": lambda frame, rng: of_opcode(frame, Opcode.UC_SEND_MIDDLE),
    "a first": lambda frame, rng: of_opcode(frame, Opcode.UC_SEND_FIRST),
    "a last": lambda frame, rng: of_opcode(frame, Opcode.UC_SEND_LAST),
    "of a reliable connection": lambda frame, rng: of_opcode(frame, Opcode.RC_SEND_ONLY),
    "a write": lambda frame, rng: of_opcode(frame, 0x2A),
    "another partition": lambda frame, rng: datagram(
        replace(frame, bth=replace(frame.bth, pkey=0x7FFF))
    ),
    "padded": lambda frame, rng: datagram(
        replace(frame, bth=replace(frame.bth, pad_bytes=3), payload=frame.payload + bytes(3))
    ),
    "to another host": lambda frame, rng: datagram(replace(frame, dst_ipv4=frame.dst_ipv4 + 1)),
    "of another host": lambda frame, rng: datagram(replace(frame, src_ipv4=frame.src_ipv4 + 1)),
    "of another flow": lambda frame, rng: datagram(replace(frame, src_udp=frame.src_udp ^ 1)),
    "cut": lambda frame, rng: datagram(frame)[: rng.randrange(len(datagram(frame)))],
    "nothing": lambda frame, rng: b"",
}


def of_opcode(frame: RoceFrame, opcode: int) -> bytes:
    return datagram(replace(frame, bth=replace(frame.bth, opcode=opcode)))


def flipped(data: bytes, rng: random.Random) -> bytes:
    """But for the byte that switches on the way may change."""
    bit = rng.choice([*range(4 * 8), *range(5 * 8, 8 * len(data))])
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("what", SPOILS)
def test_what_no_nic_would_take_is_dropped_and_counted(what: str) -> None:
    rng, made = random.Random(1), 0

    def spoil(frame: RoceFrame) -> list[bytes]:
        nonlocal made
        made += 1
        return [SPOILS[what](frame, rng), datagram(frame)]

    with RoceModel(spoil=spoil) as switch:
        (damaged,) = reduce_over(switch, count=1, rounds=1, spoilt=lambda: made)
    assert damaged >= 41  # one for each chunk; what came last may have been sent again meanwhile
    assert made - 2 <= damaged <= made


def test_numbers_may_jump_and_what_is_old_may_come_again() -> None:
    """As a queue pair of an unreliable connection takes it; and old results are not taken twice."""
    rng = random.Random(2)
    of: dict[int, list[bytes]] = {}

    def spoil(frame: RoceFrame) -> list[bytes]:
        old = of.setdefault(frame.bth.dest_qp, [])
        old.append(datagram(frame))
        jumps = replace(frame, bth=replace(frame.bth, psn=psn_of(rng.getrandbits(24))))
        return [rng.choice(old), datagram(jumps), rng.choice(old)]

    with RoceModel(spoil=spoil, loss=0.02) as switch:
        assert reduce_over(switch) == [0, 0]


def test_marks_are_no_damage() -> None:
    """FECN and BECN are not covered: BTH's fifth byte may change on the way."""

    def spoil(frame: RoceFrame) -> list[bytes]:
        data = bytearray(datagram(frame))
        data[4] = 0xC0
        return [bytes(data)]

    with RoceModel(spoil=spoil) as switch:
        assert reduce_over(switch, count=1, rounds=1) == [0]


def test_which_transports_carry_a_modes_packets() -> None:
    check_speaks("rank 0", "auto", names.ROCE)
    check_speaks("rank 0", "roce-soft", names.ROCE)
    with pytest.raises(TransportError, match=r"rank 0: .* 'udp', .* 'roce', .* roce or roce-soft"):
        check_speaks("rank 0", "udp", names.ROCE)
    with pytest.raises(TransportError, match=r"'roce-soft', .* 'pool', whose .* udp or shm"):
        check_speaks("rank 0", "roce-soft", names.POOL)


def test_packets_must_pass_the_first_link_with_what_is_around_them() -> None:
    with RoceModel() as switch:
        whom, most_bytes = Peer.at(switch.address), 65535 - 20 - 8 - 16  # of the loopback device
        with closing_link(open_roce_link("rank 0", "roce-soft", whom, "127.0.0.1", 1, most_bytes)):
            pass
        with pytest.raises(TransportError, match="packets of 65536 bytes do not fit"):
            open_roce_link("rank 0", "roce-soft", whom, "127.0.0.1", 1, most_bytes + 1)
