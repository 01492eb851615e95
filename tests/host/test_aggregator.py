"""Rank 0 with its job's aggregator: it goes on until the others have left."""

from __future__ import annotations

import threading

from ina.host.aggregator import OthersHere
from ina.host.ticket import Ticket

TICKET = Ticket(
    job_name="j", job=1, epoch=1, rank=0, world_size=3, slots=4, values_per_packet=64,
    switch_host="127.0.0.1", switch_udp_port=1,
)  # fmt: skip
DEADLINE_S = 30.0


def test_it_waits_until_all_others_have_left_whoever_says_so() -> None:
    others = OthersHere(TICKET)
    assert not others.wait(0.0)
    others.left([1])
    assert not others.wait(0.0)
    last = threading.Timer(0.02, others.left, [[2, 0]])
    last.start()
    assert others.wait(DEADLINE_S)
    others.left([1, 2])  # again
    assert others.wait(0.0)
