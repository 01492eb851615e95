"""A transport that changes to another mapping while it works: sums are those of a run without."""

from __future__ import annotations

import random

import pytest

from ina.host import Session
from ina.host.ticket import Ticket
from ina.host.udp import UdpLink
from tests.host.remapped import JOB, Mapped, Tensors
from tests.host.udp_model import UdpModel, closing

VALUES = 64


def sessions_of(
    switch: UdpModel, count: int, slots: int, threads: list[int], *, recoverable: bool = False
) -> list[Session]:
    links = [UdpLink.open(*switch.address, "127.0.0.1") for _ in range(count)]
    switch.install_ports(JOB, 1, [link.address[1] for link in links])
    return [
        Session(
            Ticket("test", JOB, 1, rank, count, slots, switch.values, *switch.address),
            link,
            threads=threads[rank % len(threads)],
            recoverable=recoverable,
        )
        for rank, link in enumerate(links)
    ]


@pytest.mark.parametrize("loss", [0.0, 0.05])
@pytest.mark.parametrize(
    ("before", "after"), [(16, 64), (64, 16), (32, 32), (2, 64), (64, 2)], ids=str
)
@pytest.mark.parametrize("threads", [[1], [4, 1, 2]], ids=str)
def test_it_grows_shrinks_and_moves_under_way(
    before: int, after: int, threads: list[int], loss: float
) -> None:
    rng = random.Random(before * after)
    with (
        UdpModel(slots=256, values=VALUES, loss=loss, seed=after) as switch,
        closing(sessions_of(switch, 3, before, threads)) as sessions,
    ):
        tensors, mapped = Tensors(sessions, VALUES, before + after), Mapped(switch, sessions)
        for turn in range(3):
            tensors.submit_all(rng.randint(1, 6))
            for _ in range(rng.randint(0, 6)):  # these ranks are ahead of rank 0
                tensors.submit(rng.choice([1, 2]))
            order = rng.sample(range(3), 3)
            first = mapped.change(after if turn % 2 == 0 else before, order)
            assert first == tensors.submitted(0) + 1
            behind = max(map(tensors.submitted, range(3)))
            for rank in range(3):
                for _ in range(behind - tensors.submitted(rank) + 2):
                    tensors.submit(rank)
            mapped.end()
        tensors.check()
        for session in sessions:
            assert session._transport.mappings() == [(mapped.epoch, mapped.slots // 2)]
            stats = session.stats()
            assert stats.window == mapped.slots // 2
            assert stats.operations_done == tensors.submitted(0)
            assert stats.corrupted_sums == 0
