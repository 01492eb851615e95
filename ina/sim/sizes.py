"""How long flows are: distributions of the literature, by points of their cumulative shares."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

SEGMENT_BYTES = 1460

# Both in the form in which the authors of pFabric (Alizadeh et al., SIGCOMM 2013) simulated them,
# as segments of 1460 bytes and the share of flows that are no longer; straight lines between.
# Measured in a cluster for web search: DCTCP (Alizadeh et al., SIGCOMM 2010).
_WEB_SEARCH = (
    (1, 0.0),
    (6, 0.15),
    (13, 0.2),
    (19, 0.3),
    (33, 0.4),
    (53, 0.53),
    (133, 0.6),
    (667, 0.7),
    (1333, 0.8),
    (3333, 0.9),
    (6667, 0.97),
    (20000, 1.0),
)
# Measured in a cluster for data mining: VL2 (Greenberg et al., SIGCOMM 2009).
_DATA_MINING = (
    (1, 0.5),
    (2, 0.6),
    (3, 0.7),
    (7, 0.8),
    (267, 0.9),
    (2107, 0.95),
    (66667, 0.99),
    (666667, 1.0),
)
Points = tuple[tuple[float, float], ...]
NAMED: dict[str, Points] = {
    name: tuple((float(segments * SEGMENT_BYTES), share) for segments, share in points)
    for name, points in (("web-search", _WEB_SEARCH), ("data-mining", _DATA_MINING))
}
"""(bytes, share of flows that are no longer)."""


def points(sizes: str | int) -> Points:
    """Of a distribution's name, or of a size that all have, in bytes."""
    return ((float(sizes), 1.0),) if isinstance(sizes, int) else NAMED[sizes]


def mean_bytes(of: Sequence[tuple[float, float]]) -> float:
    """Of a distribution: of the smallest size as it is, of others in the middle of their piece."""
    total = of[0][0] * of[0][1]
    for (less, from_share), (more, to_share) in itertools.pairwise(of):
        total += (less + more) / 2 * (to_share - from_share)
    return total
