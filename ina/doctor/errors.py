"""What the doctor cannot do."""

from __future__ import annotations

from ina.errors import UnavailableError


class ExaminationError(UnavailableError):
    """What was asked for cannot be examined: the controller does not answer, or has no such job."""
