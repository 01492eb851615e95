"""Whether the workers of a job reduce the same things: nothing in their packets tells.

Ranks that submit other sizes, dtypes or operations than the rest run into their deadline, or worse,
get sums of things that do not belong together. Their heartbeats give them away.
"""

from __future__ import annotations

from collections.abc import Mapping

from ina.protocol.spec import ValueType
from ina.rpc import controller_pb2 as pb2


def disagreement(progress: Mapping[int, pb2.Progress]) -> str | None:
    """One line on how the ranks differ, from what each said last; None: as far as known not."""
    return _of_pending(progress) or _of_history(progress)


def _of_pending(progress: Mapping[int, pb2.Progress]) -> str | None:
    """Compares operations that have the same number; says exactly what differs."""
    by_number: dict[int, dict[str, list[int]]] = {}
    for rank, report in sorted(progress.items()):
        if report.HasField("oldest"):
            described = by_number.setdefault(report.oldest.number, {})
            described.setdefault(describe(report.oldest), []).append(rank)
    for number, described in sorted(by_number.items()):
        if len(described) > 1:
            parts = [f"{_ranks(ranks)}: {what}" for what, ranks in described.items()]
            return f"the ranks disagree on operation {number}: {'; '.join(parts)}"
    return None


def _of_history(progress: Mapping[int, pb2.Progress]) -> str | None:
    """Compares the first 1, 2, 4, 8 ... operations, as far as two ranks or more have come."""
    longest = max((len(report.digests) for report in progress.values()), default=0)
    for index in range(longest):
        groups: dict[int, list[int]] = {}
        for rank, report in sorted(progress.items()):
            if index < len(report.digests):
                groups.setdefault(report.digests[index], []).append(rank)
        if len(groups) > 1:
            parts = " against ".join(_ranks(ranks) for ranks in groups.values())
            return (
                f"the ranks disagree on sizes, dtypes or reductions among their first "
                f"{1 << index} operations: {parts}"
            )
    return None


def describe(operation: pb2.Operation) -> str:
    """What is summed, for people."""
    known = {value.value: value.name.lower() for value in ValueType}
    name = known.get(operation.value_type, f"type {operation.value_type}")
    return f"{'avg' if operation.average else 'sum'} of {operation.elems} {name}"


def _ranks(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"
