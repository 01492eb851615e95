"""What no fabric can be made of. Each message is one line."""

from __future__ import annotations

from ina.errors import InvalidInputError


class FabricError(InvalidInputError):
    """A shape or a file of a fabric is wrong; the message names the number, or the file."""
