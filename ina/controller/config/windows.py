"""The part of the configuration that says how jobs' windows are: algorithms, weights, caps."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

CongestionTable = dict[str, str | int | float]
"""``algorithm``, and options of it by their names, as Congestion.from_table reads them."""
MAX_WEIGHT = 1e6
Weight = Annotated[float, Meta(gt=0, le=MAX_WEIGHT)]
RateGbit = Annotated[float, Meta(gt=0, le=1e6)]
"""Of a link, each way, in Gbit/s of packets with all their headers."""


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
