"""What is wrong with a window algorithm. Each message is one line: what and where."""

from __future__ import annotations

from ina.errors import InvalidInputError


class CongestionError(InvalidInputError):
    """No such algorithm or option, or a value out of its range; the message says which."""


class WindowError(CongestionError):
    """A window in Python raised an exception, or said what is no number of packets or no pace.

    The exception is the cause, and `detail` its traceback.
    """
