"""``ina job history`` and ``ina job plan``: why jobs have their slots, and what one would get."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.common.output import table
from ina.errors import InvalidInputError
from ina.rpc import controller_pb2 as pb2
from ina.units import time_text

_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def bytes_of(option: str, text: str) -> float:
    """``100M`` as bytes. Raises InvalidInputError."""
    number, unit = (text[:-1], text[-1]) if text[-1:] in ("k", "M", "G") else (text, "")
    try:
        value = float(number) * _UNITS[unit]
    except ValueError:
        value = -1.0
    if not 0 < value < float("inf"):
        raise InvalidInputError(f"{option} {text}: want bytes, as 250000, 100M or 1.5G")
    return value


def deadline_unix_s(option: str, text: str) -> float:
    """Of ``--deadline``, or a file's key. Raises InvalidInputError."""
    from ina.host.wishes import deadline_of  # loads NumPy, which no other `ina job` needs

    try:
        return deadline_of(text, time.time())
    except InvalidInputError as error:
        raise InvalidInputError(f"{option} {error}") from None


def history_view(reply: pb2.ListDecisionsReply) -> RenderableType:
    """A line a decision."""
    if not reply.decisions:
        return f"policy {reply.policy}: no decisions yet"
    rows = [[_at(it.unix_s), it.job, it.what, _sizes(it), it.reason] for it in reply.decisions]
    parts: list[RenderableType] = [
        table(["at", "job", "what", "slots", "why"], rows, title=f"policy {reply.policy}")
    ]
    if reply.forgotten:
        parts.append(f"{reply.forgotten} older ones are in the controller's log")
    return Group(*parts)


def plan_view(reply: pb2.PlanJobReply) -> RenderableType:
    """What it would get, what that is worth, and what it does to others."""
    lines = [f"policy {reply.policy}: {reply.slots} slots" if reply.slots else reply.refusal]
    if reply.useful_slots:
        of_use = f"{reply.useful_slots} slots are of use to it"
        with_all = f"a step takes {time_text(reply.step_alone_s)} with all of them"
        now = f", {time_text(reply.step_s)} with these" if reply.slots else ""
        lines.append(f"{of_use}: {with_all}{now}{_without(reply)}")
    lines += [f"{it.job}: {it.what}s, {_sizes(it)} slots" for it in _first(reply.others)]
    if reply.HasField("route"):
        lines += _route_lines(reply.route)
    return Text("\n".join(lines))


def _route_lines(route: pb2.RoutePlan) -> Iterator[str]:
    yield f"placement {route.placement}, summed in {len(route.trees)} trees:"
    for tree in route.trees:
        root, *others = tree.switches
        below = f" above {', '.join(others)}" if others else ""
        yield f"  {tree.share:.0%} of the lanes: {root}{below}"
    yield (
        f"a step takes {time_text(route.step_s)} beside the jobs that run,"
        f" {time_text(route.step_alone_s)} alone, {time_text(route.step_without_s)} without"
        f" aggregation, over a ring; what holds it up: {route.limit}"
        + (" (100 MB a step supposed)" if route.supposed else "")
    )
    for it in route.slowed:
        longer = it.after_s / it.before_s - 1 if it.before_s else 0.0
        yield (
            f"slows down {it.name}: a step takes {time_text(it.after_s)} instead of"
            f" {time_text(it.before_s)} ({longer:+.0%})"
        )
    if not route.slowed:
        yield "slows down nobody"


def _without(reply: pb2.PlanJobReply) -> str:
    if not reply.step_without_s:
        return ""
    return f", {time_text(reply.step_without_s)} without ina, over a ring"


def _first(decisions: Sequence[pb2.Decision]) -> Iterable[pb2.Decision]:
    """Who shrinks first."""
    return sorted(decisions, key=lambda it: (it.what != "shrink", it.job))


def _sizes(decision: pb2.Decision) -> str:
    if decision.slots_before:
        return f"{decision.slots_before} -> {decision.slots}"
    return str(decision.slots) if decision.slots else ""


def _at(unix_s: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(unix_s))
