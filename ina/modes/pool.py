"""Mode ``pool``: a job has slots of its own on each of its switches, and nobody else's packets meet
its own there. All its workers are in each sum.
"""

from __future__ import annotations

from ina.modes.mode import Mode
from ina.p4 import names


class Pool(Mode):
    """What :class:`Mode` says of itself."""

    name = names.POOL
