"""The bare UDP echo beside which collectives are measured."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from ina.bench.torch import bare_udp
from ina.bench.torch.bare_udp import UdpEnd
from ina.errors import DeadlineError


def test_each_datagram_comes_back() -> None:
    with closing(UdpEnd("127.0.0.1", 36)) as one, closing(UdpEnd("127.0.0.1", 36)) as other:
        one.connect(other.place)
        other.connect(one.place)
        with ThreadPoolExecutor(1) as pool:
            answered = pool.submit(other.answer, 3)
            one.ask(3)
            answered.result()


def test_a_ring_goes_on_when_all_have_got_one() -> None:
    ends = [UdpEnd("127.0.0.1", 36) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        ring = [
            pool.submit(end.pass_on, 5, ends[(at + 1) % 3].place) for at, end in enumerate(ends)
        ]
        for one in ring:
            one.result()
    for end in ends:
        end.close()


def test_a_datagram_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare_udp, "_ANSWER_S", 0.01)
    with closing(UdpEnd("127.0.0.1", 36)) as one, closing(UdpEnd("127.0.0.1", 36)) as silent:
        one.connect(silent.place)
        with pytest.raises(DeadlineError, match=r"udp: no datagram in 0\.01 s"):
            one.ask(1)
