"""Whether the workers of a job reduce the same things, and how they differ if not.

The data path stops by itself where they differ: a worker takes no result in which another one's
digest is (docs/protocol.md). Each says then what it has submitted, and here that is put side by
side. Workers whose packets do not meet, because they are on different lanes, just wait; what they
say meanwhile tells as well. No I/O.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from ina.protocol.collective import Collective
from ina.rpc import controller_pb2 as pb2
from ina.rpc.operations import collective_of

MAX_SUBMITTED = 512
"""Operations that one report may list."""


@dataclass(frozen=True)
class Difference:
    """Ranks of one job reduce different things."""

    reason: str
    """One line: what each of them does, as far as they have said."""
    is_whole: bool
    """Nobody can add to it."""
    is_damage: bool = False
    """They do not: all have submitted the same, and a result says something else."""


_KEPT = 4 * MAX_SUBMITTED
"""Of all that was submitted: more than ranks can be apart."""


class Agreement:
    """Whether reports of a job's ranks may differ: asked four times a second of every job, which is
    too often to put all of them side by side each time.
    """

    def __init__(self) -> None:
        self.is_doubtful = False
        """Some report differs from another one, or says that a result does."""
        self._known: dict[int, Collective] = {}
        """What the first who said it has submitted, by number."""

    def hear(self, report: pb2.Progress) -> None:
        """To be told of each report of any rank."""
        if report.differs_at:
            self.is_doubtful = True
        for operation in _operations(report):
            key = collective_of(operation)
            if self._known.setdefault(operation.number, key) != key:
                self.is_doubtful = True
        if len(self._known) > 2 * _KEPT:
            self._known = dict(sorted(self._known.items())[-_KEPT:])


def find_difference(
    progress: Mapping[int, pb2.Progress], world_size: int, left: Collection[int] = ()
) -> Difference | None:
    """How ranks differ in the first operation in which they do; None: as far as known not.

    Args:
        progress: what each rank said last, those included that have left.
        world_size: all ranks; those without a report have yet to make one.
        left: ranks that have left. They say nothing more.
    """
    known = _by_number(progress)
    differing = [number for number, ranks in known.items() if len(set(ranks.values())) > 1]
    seen = [report.differs_at for report in progress.values() if report.differs_at]
    if not differing and not seen:
        return None
    # What a result shows may have begun before: the first that is known to differ, if there is one.
    number = min(differing or seen)
    parts: dict[str, list[int]] = {}
    for rank in range(world_size):
        what = known.get(number, {}).get(rank)
        parts.setdefault(what or _silence(progress.get(rank), number), []).append(rank)
    told = "; ".join(f"{_ranks(ranks, left)}: {what}" for what, ranks in parts.items())
    missing = [rank for rank in range(world_size) if rank not in known.get(number, {})]
    if not differing and not missing:
        return Difference(
            f"a result of all-reduce {number} is not of what all ranks have submitted alike"
            f" ({told}): a packet has been changed on its way, or the switch's memory",
            is_whole=True,
            is_damage=True,
        )
    return Difference(
        f"ranks differ in all-reduce {number}: {told}",
        is_whole=bool(differing) and all(rank in left for rank in missing),
    )


def _by_number(progress: Mapping[int, pb2.Progress]) -> dict[int, dict[int, str]]:
    """By operation, in words: what each rank says that it is."""
    known: dict[int, dict[int, str]] = {}
    for rank, report in sorted(progress.items()):
        for operation in _operations(report):
            known.setdefault(operation.number, {})[rank] = str(collective_of(operation))
    return known


def _operations(report: pb2.Progress) -> Iterator[pb2.Operation]:
    yield from report.submitted
    if report.HasField("oldest"):
        yield report.oldest


def _silence(report: pb2.Progress | None, number: int) -> str:
    if report is None or report.operations_submitted >= number:
        return "not known"
    return f"nothing, it has submitted {report.operations_submitted} in all"


def _ranks(ranks: list[int], left: Collection[int]) -> str:
    names = [f"{rank} (has left)" if rank in left else str(rank) for rank in ranks]
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(names)}"
