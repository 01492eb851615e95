"""How many packets a worker has in flight: the window algorithms by name, and their options.

The algorithms are C++ (``native/congestion``), for they are asked for each packet. Names, options
and ranges come from there; a new one appears here by itself. A job's algorithm is chosen in the
controller's file (``[congestion]``), comes to the workers in the ticket, and can be overruled by a
worker in ``Session``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ina.errors import InvalidInputError
from ina.extension import congestion as native

__all__ = ["ALGORITHMS", "Algorithm", "Choice", "Congestion", "CongestionError", "Option"]

Choice = native.Choice
"""An algorithm with its options, as a transport is told."""


class CongestionError(InvalidInputError):
    """No such algorithm or option, or a value out of its range; the message says which."""


@dataclass(frozen=True)
class Option:
    """A number that an algorithm can be given."""

    name: str
    usual: float  # unless it is given
    least: float
    most: float
    what: str  # with its unit, for people


@dataclass(frozen=True)
class Algorithm:
    """A way to decide how many packets are in flight."""

    name: str
    what: str  # for people
    options: tuple[Option, ...]


def _algorithm(told: native.Algorithm) -> Algorithm:
    options = (Option(o.name, o.usual, o.least, o.most, o.what) for o in told.options)
    return Algorithm(told.name, told.what, tuple(options))


ALGORITHMS: Mapping[str, Algorithm] = MappingProxyType(
    {told.name: _algorithm(told) for told in native.algorithms()}
)
"""By name, the usual one first."""


@dataclass(frozen=True)
class Congestion:
    """One algorithm with its options. Immutable, picklable, and valid.

    `options`: values by name; those left out have their usual ones. Raises CongestionError.
    """

    algorithm: str = next(iter(ALGORITHMS))
    options: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", dict(self.options))
        self.choice()

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Congestion:
        """Of a TOML table: ``algorithm``, and options by their names. Raises CongestionError."""
        options = dict(table)
        algorithm = options.pop("algorithm", cls.algorithm)
        for name, value in options.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise CongestionError(f"congestion option {name!r}: want a number, got {value!r}")
        return cls(str(algorithm), options)

    def choice(self) -> native.Choice:
        """The same for the native core."""
        values = [(name, float(value)) for name, value in self.options.items()]
        try:
            return native.Choice(self.algorithm, values)
        except ValueError as error:
            raise CongestionError(str(error)) from None

    def __str__(self) -> str:
        given = ", ".join(f"{name} {value:g}" for name, value in self.options.items())
        return f"{self.algorithm} ({given})" if given else self.algorithm
