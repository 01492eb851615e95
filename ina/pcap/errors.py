"""What is wrong with a capture file. Each message is one line: the file, where, what."""

from __future__ import annotations

from ina.errors import InvalidInputError


class CaptureError(InvalidInputError):
    """Not a capture file, or one that is damaged."""
