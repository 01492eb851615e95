"""What of a switch outlives its process, for the next one to go on with it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ina.errors import UnavailableError

Change = tuple[bytes, bytes | None]
"""A key, and what is there from now on; None: nothing."""


@dataclass(frozen=True)
class Kept:
    """What a former process has left, as it was told."""

    config: bytes
    """Of the pipeline that packets go through."""
    entities: tuple[bytes, ...]
    """In the order in which they came."""


class Keeper(ABC):
    """Remembers what the kernel does not tell of a pipeline that goes on without a process.

    Methods raise UnavailableError: there is no room.
    """

    @abstractmethod
    def kept(self) -> Kept | None:
        """None: nobody has left anything."""

    @abstractmethod
    def foreign(self, why: str) -> UnavailableError:
        """What there is cannot be taken over; the error says how to remove it."""

    @abstractmethod
    def begin(self, config: bytes, entities: Mapping[bytes, bytes]) -> None:
        """The pipeline that was installed last is of this configuration, and has these."""

    @abstractmethod
    def record(self, changes: Sequence[Change]) -> None:
        """All of them, or, where this process ends meanwhile, none."""
