"""What goes wrong between a client and a switch."""

from __future__ import annotations

from ina.errors import UnavailableError


class SwitchError(UnavailableError):
    """The switch does not answer, or refused what it was told to write."""

    refused = False
    """It answered, and refused an entry: to try again is of no use."""
