"""Where workers run: on this host over loopback, in a star of namespaces, or in racks of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

LOOPBACK = "loopback"
"""The link of workers that are on one host."""


class Testbed(Protocol):
    """Starts one process a rank."""

    @property
    def workers(self) -> int:
        """How many processes."""
        ...

    @property
    def link(self) -> str:
        """``loopback``, ``unshaped``, or the rate of the links as it was written, ``1gbit``."""
        ...

    @property
    def rate_bit_s(self) -> float | None:
        """Of the slowest link that a tensor crosses, each way; None: as fast as the machine."""
        ...

    @property
    def hosts(self) -> int:
        """That the workers are on, as many on each; each has a link, unless there is one host."""
        ...

    @property
    def racks(self) -> int:
        """Switches between the workers and the root; 0: there is one switch."""
        ...

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        timeout_s: float,
        on_line: Callable[[str], None],
    ) -> None:
        """Runs ``python -m module``; ``on_line`` gets rank 0's lines. Leaves no process behind.

        Raises :class:`~ina.errors.InaError`: a rank failed; the deadline passed.
        """
        ...
