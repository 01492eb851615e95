"""What can go wrong in a comparison, besides a difference."""

from __future__ import annotations

from ina.errors import InvalidInputError, UnavailableError


class DeviceError(UnavailableError):
    """A device under test does not start, does not answer, or refuses what every device must do."""


class CaseFileError(InvalidInputError):
    """A file that is no replayable case; the message says where it is wrong."""
