"""Where workers run: on this host over loopback, in a star of namespaces, or in racks of them."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

import msgspec

from ina.errors import InaError

_Asked = TypeVar("_Asked")
Record = dict[str, Any]
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


def records(
    testbed: Testbed,
    module: str,
    asked: object,
    *,
    count: int,
    timeout_s: float,
    environ: Mapping[str, str] = MappingProxyType({}),
    on_record: Callable[[Record], None] = lambda record: None,
) -> list[Record]:
    """What rank 0 prints, a JSON object a line; ``on_record`` gets each as it comes.

    ``asked``: a dataclass, which the ranks have from :func:`asked_of`. Raises as
    :meth:`Testbed.run`; InaError: there are not ``count`` lines.
    """
    found: list[Record] = []

    def on_line(line: str) -> None:
        if line.startswith('{"'):
            found.append(json.loads(line))
            on_record(found[-1])

    order = msgspec.json.encode(asked).decode()
    testbed.run(module, [order], environ=environ, timeout_s=timeout_s, on_line=on_line)
    if len(found) != count:
        raise InaError(f"{module}: {len(found)} results of {count}")
    return found


def own_switch(testbed: Testbed, **environ: object) -> dict[str, str]:
    """For the ranks' environment, where these start a switch; a star's has been started."""
    if testbed.link != LOOPBACK:
        return {}
    return {f"INA_{name.upper()}": str(value) for name, value in environ.items()}


def asked_of(kind: type[_Asked]) -> _Asked:
    """In a rank's process: what :func:`records` was given."""
    return msgspec.json.decode(sys.argv[1], type=kind)
