"""The part of the configuration that says how jobs get trees and windows: as all, or by a rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from ina.controller.config.tofino import Problem
from ina.document import did_you_mean

FIRST = "first"
"""The placement that knows of no links."""
PLACEMENTS = ("ina", "nearest", "single", "grid", "goat", "panama", "exact")
"""Those that do, by the names of their policies."""
DEFAULT_PLACEMENT = "ina"


class RoutingConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """``[routing]``: what policies may do."""

    stripes: Literal[1, 2, 4, 8, 16] = 8
    """Parts that a job's lanes can be dealt in, to as many trees at most."""
    moves: Annotated[int, Meta(ge=0, le=1000)] = 8
    """Trees of running jobs that are moved at a time for a better step; 0: they stay, but for those
    that go over what is down."""
    routed: bool = False
    """Switches on the way between two nodes of a tree pass packets on by their IPv4 address, once
    these are sent to their ``data_mac``; else by the MAC address of where they go."""


def placement_problems(placement: str, rules: tuple[Any, ...]) -> Iterator[Problem]:
    """Of the file's ``placement`` and of its ``[[job]]``, as (key, problem)."""
    if placement not in ("", FIRST, *PLACEMENTS):
        yield "placement", _unknown(placement, (FIRST, *PLACEMENTS))
    for index, rule in enumerate(rules):
        if rule.placement is not None and rule.placement not in PLACEMENTS:
            yield f"job[{index}].placement", _unknown(rule.placement, PLACEMENTS)


def _unknown(name: str, known: tuple[str, ...]) -> str:
    return f"no placement {name!r}: have {', '.join(known)}{did_you_mean(name, known)}"


CongestionTable = dict[str, str | int | float]
"""``algorithm``, and options of it by their names, as Congestion.from_table reads them."""
MAX_WEIGHT = 1e6
Weight = Annotated[float, Meta(gt=0, le=MAX_WEIGHT)]


class WindowsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Caps of windows, for jobs that share links or slots."""

    caps: Literal["none", "max-min"] = "none"
    """``max-min``: a worker has no more in flight than its job's share of the links takes, where
    others share them. ``none``: the windows' own algorithms alone."""
    slack: Annotated[float, Meta(ge=1, le=100)] = 2.0
    """A cap is so many times what the share takes in the shortest round trip."""
    least_packets: Annotated[int, Meta(ge=1, le=1 << 15)] = 8
    """No cap is below."""


class JobRule(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What holds for jobs whose name fits."""

    name: str
    """A pattern: ``*`` any characters, ``?`` one, ``[abc]`` one of these."""
    weight: Weight | None = None
    """None: its tenant's."""
    congestion: CongestionTable | None = None
    """None: its tenant's, or the one of all."""
    placement: str | None = None
    """The policy that finds its trees; None: that of all. Only where all are placed over links."""
