"""Rank 0 with its job's aggregator: it goes on until the others have left."""

from __future__ import annotations

import threading

from ina.host.member.state import OthersHere
from tests.worlds.fakes.tickets import direct_ticket

TICKET = direct_ticket("j", 1, 1, 0, 3, 4, 64, "127.0.0.1", 1)


def test_it_waits_until_all_others_have_left_whoever_says_so() -> None:
    others = OthersHere(TICKET, threading.Event())
    assert not others.none_left.is_set()
    others.left([1])
    assert not others.none_left.is_set()
    others.left([2, 0])
    assert others.none_left.is_set()
    others.left([1, 2])  # again
    assert others.none_left.is_set()
