"""Process groups in threads, whose sessions reach the reference switch over UDP."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from torch._C._distributed_c10d import HashStore

from ina.host import Session, Ticket
from ina.torch import ProcessGroupIna, seat
from ina.torch.env import Settings
from tests.worlds.fakes.udp_model import UdpModel

LIMIT_S = 60.0
VALUES = 64
_T = TypeVar("_T")


class ModelGroups:
    """All ranks' groups of one job."""

    def __init__(self, groups: Sequence[ProcessGroupIna], sessions: Sequence[Session]) -> None:
        self.groups, self.sessions = groups, sessions

    def run(self, do: Callable[[ProcessGroupIna, int], _T]) -> list[_T]:
        """``do`` on all ranks at the same time; what it returned, by rank."""
        with ThreadPoolExecutor(len(self.groups)) as pool:
            futures = [pool.submit(do, group, rank) for rank, group in enumerate(self.groups)]
            return [future.result(LIMIT_S) for future in futures]


@contextmanager
def model_groups(
    ranks: int,
    monkeypatch: pytest.MonkeyPatch,
    *,
    loss: float = 0.0,
    has_shapes: bool = True,
) -> Iterator[ModelGroups]:
    """``has_shapes``: else the trees are such as can only sum."""
    settings = Settings(controller="127.0.0.1:1", host_node=False, on_switch_loss="fallback")
    with UdpModel(values=VALUES, loss=loss, seed=3) as switch:
        if not has_shapes:
            _without_shapes(switch, monkeypatch)
        sessions = switch.sessions(ranks, recoverable=True)

        class Joins:
            @staticmethod
            def join(_: str, __: str, rank: int, *___: object) -> Session:
                return sessions[rank]

        monkeypatch.setattr(seat, "Session", Joins)
        store = HashStore()

        def make(rank: int) -> ProcessGroupIna:
            timeout = timedelta(seconds=LIMIT_S)
            return ProcessGroupIna(store, rank, ranks, timeout, settings=settings)

        with ThreadPoolExecutor(ranks) as pool:
            groups = list(pool.map(make, range(ranks)))
            try:
                yield ModelGroups(groups, sessions)
            finally:
                list(pool.map(lambda group: group._close(0.0), groups))


def _without_shapes(switch: UdpModel, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = switch.ticket

    def ticket(*args: Any) -> Ticket:
        made = whole(*args)
        return replace(made, trees=tuple(replace(tree, owners=()) for tree in made.trees))

    monkeypatch.setattr(switch, "ticket", ticket)
