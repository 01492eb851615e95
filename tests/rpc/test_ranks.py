"""Ranks in words."""

from __future__ import annotations

import pytest

from ina.doctor import job_verdict
from ina.rpc import controller_pb2 as pb2
from ina.rpc.ranks import ranks_text


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([2], "rank 2"),
        ([1, 0], "ranks 0, 1"),
        ([5, 3, 4], "ranks 3-5"),
        ([*range(32), 64], "ranks 0-31, 64"),
        ([0, 1, 7, 9, 10, 11, 10], "ranks 0, 1, 7, 9-11"),
        (range(1024), "ranks 0-1023"),
    ],
)
def test_few_and_many(ranks: list[int], said: str) -> None:
    assert ranks_text(ranks) == said


def test_where_they_are_is_said_of_a_few() -> None:
    members = [pb2.Member(rank=rank, host="10.0.0.3", udp_port=4000 + rank) for rank in range(64)]
    assert job_verdict.ranks_text([], members) == "no rank"
    assert job_verdict.ranks_text([1], members) == "rank 1 (10.0.0.3:4001)"
    assert "1 (10.0.0.3:4001), 2 (10.0.0.3:4002)" in job_verdict.ranks_text([1, 2], members)
    assert job_verdict.ranks_text(range(32), members) == "ranks 0-31"
