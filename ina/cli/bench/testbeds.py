"""Where ``ina bench`` runs workers: this host's loopback, by torchrun, or a star of namespaces."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from ina.bench import parse
from ina.bench.star import LEAST_QUEUE_BYTES, QUEUE_BYTES, StarNetwork, star
from ina.bench.testbed import LOOPBACK, Testbed
from ina.cli.common import torchrun
from ina.controller.config import USUAL_NETWORK
from ina.errors import InvalidInputError
from ina.p4.builds import largest_build, require_build
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS

UNSHAPED = "unshaped"
LINK_HELP = (
    "loopback; or a star of namespaces, which needs root: unshaped, or a rate as 1gbit, 200mbit."
)

QUEUE_HELP = "Of each end of a link that has a rate, as 128K; what finds it full is dropped."


@dataclass(frozen=True)
class Loopback:
    """Processes on this host; see :class:`ina.bench.testbed.Testbed`."""

    workers: int
    multicast: bool = False
    link: str = LOOPBACK
    rate_bit_s: float | None = None
    hosts: int = 1
    racks: int = 0

    def run(
        self,
        module: str,
        arguments: Sequence[str],
        *,
        environ: Mapping[str, str],
        timeout_s: float,
        on_line: Callable[[str], None],
    ) -> None:
        """Raises WorkersFailedError, DeadlineError."""
        torchrun.run(
            module,
            arguments,
            workers=self.workers,
            environ={**environ, **({"INA_MULTICAST": USUAL_NETWORK} if self.multicast else {})},
            timeout_s=timeout_s,
            on_line=on_line,
        )


def check_link(link: str) -> float | None:
    """The rate in bits a second; None: none. Raises InvalidInputError, MissingToolError."""
    rate = None if link in (LOOPBACK, UNSHAPED) else parse.rate_bit_s("--link", link)
    if link != LOOPBACK:
        from ina.emulate.namespaces import require_privileges

        require_privileges()
    return rate


def values_for(values: int, link: str) -> int:
    """What ``--values`` stands for. Raises InvalidInputError: there is no such build."""
    if values:
        require_build("--values", values)
        return values
    if link == LOOPBACK:
        return max(VALUES_PER_PACKET_BUILDS)
    from ina.emulate.nodes import LINK_MTU_BYTES

    return largest_build(LINK_MTU_BYTES)


def queue_bytes_for(queue: str, rate_bit_s: float | None) -> int:
    """What ``--queue`` stands for; empty: as long as any would like. Raises InvalidInputError."""
    if not queue:
        return QUEUE_BYTES
    if rate_bit_s is None:
        raise InvalidInputError(f"--queue {queue}: only links with a rate have queues")
    found, *more = parse.sizes("--queue", queue)
    if more or found < LEAST_QUEUE_BYTES:
        least = parse.size_text(LEAST_QUEUE_BYTES)
        raise InvalidInputError(f"--queue {queue}: want one size, {least} or more: a super-packet")
    return found


def counted_in(testbed: Testbed) -> str:
    """The namespace of the ranks' links' other ends, where token buckets count; empty: none do."""
    if not isinstance(testbed, StarNetwork) or testbed.rate_bit_s is None:
        return ""
    return testbed.state.net


@contextmanager
def open_testbed(
    workers: int,
    link: str,
    *,
    values: int,
    queue_bytes: int = QUEUE_BYTES,
    multicast: bool = False,
    progress: Callable[[str], None],
) -> Iterator[Testbed]:
    """Where workers run, until the block ends; then nothing of it is left.

    ``queue_bytes``: of each end of a link that has a rate. ``multicast``: whether ina's results go
    to all workers at once.
    """
    rate = check_link(link)
    if link == LOOPBACK:
        yield Loopback(workers, multicast)
        return
    with star(
        workers,
        link,
        rate,
        values=values,
        queue_bytes=queue_bytes,
        multicast=multicast,
        progress=progress,
    ) as made:
        yield made
