"""How many packets a worker has in flight: the window algorithms by name, and their options.

The algorithms are C++ (``native/congestion``), for they are asked for each packet. Names, options
and ranges come from there; a new one appears here by itself. A job's algorithm is chosen in the
controller's file (``[congestion]``), comes to the workers in the ticket, and can be overruled by a
worker in ``Session``. A worker may also name a class of Python's, ``module:Class``, derived from
:class:`Window` (docs/own_window.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from ina.congestion.errors import CongestionError, WindowError
from ina.congestion.own import Own, check_name, is_own
from ina.congestion.window import Batch, Pace, Window
from ina.document import did_you_mean
from ina.extension import congestion as native

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "Batch",
    "Choice",
    "Congestion",
    "CongestionError",
    "Option",
    "Pace",
    "Window",
    "WindowError",
]

Choice = native.Choice
"""An algorithm with its options, as a transport is told."""


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

    `algorithm`: a name of the table, or a class of Python's, ``module:Class``, which is imported
    where the choice is made, and not before. `options`: values by name; those left out have their
    usual ones. Raises CongestionError.
    """

    algorithm: str = next(iter(ALGORITHMS))
    options: Mapping[str, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "options", dict(self.options))
        if self.is_own:
            check_name(self.algorithm)
        else:
            self.choice()

    @property
    def is_own(self) -> bool:
        """Whether it is a class of Python's. No worker imports one that others have named."""
        return is_own(self.algorithm)

    @classmethod
    def from_table(cls, table: Mapping[str, Any], *, own: bool = False) -> Congestion:
        """Of a TOML table: ``algorithm``, and options by their names. Raises CongestionError.

        `own`: it may be a class of Python's; else that is refused.
        """
        options = dict(table)
        algorithm = str(options.pop("algorithm", cls.algorithm))
        if is_own(algorithm) and not own:
            raise CongestionError(
                f"{algorithm!r} is a class of Python's, which each worker must ask for itself:"
                " Session(congestion=...), INA_WINDOW or --window"
            )
        for name, value in options.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise CongestionError(f"congestion option {name!r}: want a number, got {value!r}")
        return cls(algorithm, options)

    @classmethod
    def from_text(cls, text: str) -> Congestion:
        """Of one word: ``NAME`` or ``NAME,OPTION=VALUE,...``. Raises CongestionError."""
        algorithm, *pairs = text.split(",")
        return cls.from_table({"algorithm": algorithm, **dict(map(_option, pairs))}, own=True)

    @property
    def text(self) -> str:
        """The word that :meth:`from_text` reads."""
        return ",".join((self.algorithm, *(f"{name}={it!r}" for name, it in self.options.items())))

    def choice(self) -> native.Choice:
        """The same for the native core; imports the class if it is one. Raises CongestionError."""
        values = [(name, float(value)) for name, value in self.options.items()]
        own = Own(self.algorithm, self.options) if self.is_own else None
        try:
            return native.Choice(self.algorithm, values, own)
        except WindowError:
            raise
        except ValueError as error:
            raise CongestionError(f"{error}{self._meant()}") from None

    def _meant(self) -> str:
        """Which name was, where one is not known and another is close."""
        if self.algorithm not in ALGORITHMS:
            return did_you_mean(self.algorithm, ALGORITHMS)
        known = [option.name for option in ALGORITHMS[self.algorithm].options]
        unknown = [name for name in self.options if name not in known]
        return f"; there are {', '.join(known)}{did_you_mean(unknown[0], known)}" if unknown else ""

    def __str__(self) -> str:
        given = ", ".join(f"{name} {value:g}" for name, value in self.options.items())
        return f"{self.algorithm} ({given})" if given else self.algorithm


def _option(pair: str) -> tuple[str, float]:
    name, equals, value = pair.partition("=")
    try:
        if name and equals:
            return name.strip(), int(value) if value.strip().isdecimal() else float(value)
    except ValueError:
        pass
    raise CongestionError(f"congestion option {pair!r}: want NAME=NUMBER")
