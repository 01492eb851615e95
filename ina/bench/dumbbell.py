"""Namespaces on both sides of one link, which is the bottleneck of all that crosses it.

On the right is the centre of a star: a bridge, and on it the soft switch with the controller. On
the left is another bridge. Each job has a worker on either side, so its contributions cross the
link to the right and its results to the left; TCP flows go to the left, too. Hosts' own links have
no rate. Each end of the link has a token bucket, and before it a queue that marks and drops, of a
length that is known: :mod:`ina.bench.marking_queue`.

TCP's hosts hand on one segment at a time, as a wire has them; workers and the switch hand on
super-packets (GSO), which no queue divides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ina import netns
from ina.bench.marking_queue import MarkingQueue
from ina.bench.standing import Standing, standing
from ina.bench.star import (
    BRIDGE,
    NET,
    StarNetwork,
    add_bridge,
    build,
    burst_bytes,
    host_of,
    lay,
    network_of,
    plug_in,
    start_centre,
    switch_config,
)
from ina.emulate.remains import HostState
from ina.emulate.wiring import DATA_INTERFACE, switch_off_offload
from ina.netns import End, ip

WORKERS = 2
"""Of a job: one on either side."""
_LEFT = "left"
_TRUNK = "trunk"
_SPARE = 4
"""So many times its own queue is a bucket's: what is dropped there nobody counts."""


@dataclass(frozen=True)
class DumbbellShape:
    """What the dumbbell is like."""

    jobs: int
    flows: int
    """Pairs of hosts for TCP, that may be used."""
    link: str
    """What to call the rate."""
    rate_bit_s: float
    """Of the link between the sides, each way."""
    queue_bytes: int
    """At each end of it, behind what is being sent."""
    mark_bytes: int
    """What may wait there without a mark; 0: nothing is marked."""
    values: int
    """A packet."""
    congestion: Mapping[str, Any] = field(default_factory=dict)
    """The controller's table."""

    @property
    def burst_bytes(self) -> int:
        """Of each token bucket."""
        return burst_bytes(self.rate_bit_s)


@dataclass(frozen=True)
class Dumbbell:
    """One that stands."""

    plan: DumbbellShape
    network: StarNetwork
    """Its hosts are the workers': of the first job the left one and the right one, and so on."""
    flows: tuple[tuple[HostState, HostState], ...]
    """From whom, on the right, to whom, on the left, TCP may flow."""
    left: MarkingQueue
    """Towards the left: of results and TCP's data."""
    right: MarkingQueue
    """Of contributions and TCP's acknowledgements."""


@contextlib.contextmanager
def dumbbell(
    plan: DumbbellShape, progress: Callable[[str], None] = lambda step: None
) -> Iterator[Dumbbell]:
    """Such a network, until the block ends; then nothing is left.

    Raises MissingToolError (needs root, ip and tc), BpfError (Linux before 6.6, or without BPF),
    EmulationError, NetnsError, UnavailableError, DeadlineError.
    """
    count = WORKERS * plan.jobs + 2 * plan.flows
    config = switch_config(plan.values, congestion=plan.congestion)
    names = [f"h{number}" for number in range(1, count + 1)]
    with standing([NET, _LEFT, *names], config) as made:
        hosts = [host_of(made.name, number) for number in range(1, count + 1)]
        workers, tcp = hosts[: WORKERS * plan.jobs], hosts[WORKERS * plan.jobs :]
        progress(f"{len(hosts)} namespaces on both sides of {plan.link}")
        with contextlib.ExitStack() as queues:
            left, right = _build(made, hosts, plan)
            for queue in (left, right):
                queues.callback(queue.close)
            for host in tcp:
                with netns.inside(host.namespace):
                    switch_off_offload(DATA_INTERFACE)
            start_centre(made, config)
            network = network_of(made, plan.link, plan.rate_bit_s, workers)
            pairs = tuple(zip(tcp[1::2], tcp[::2], strict=True))
            yield Dumbbell(plan, network, pairs, left, right)


def _build(
    made: Standing, hosts: list[HostState], plan: DumbbellShape
) -> tuple[MarkingQueue, MarkingQueue]:
    """Hosts in turns on the left and on the right; the queues to the left and to the right."""
    net, left = made.space(NET), made.space(_LEFT)
    build(net, hosts[1::2], None, 0)
    netns.add_host(left)
    add_bridge(left)
    addresses = [(host.address, host.name) for host in hosts]
    for host in hosts[::2]:
        plug_in(host, left, addresses, None, 0)
    one, other = End(left, _TRUNK), End(net, _TRUNK)
    lay(one, other, plan.rate_bit_s, _SPARE * (plan.queue_bytes + plan.burst_bytes))
    for end in (one, other):
        ip(end.space, "link", "set", end.interface, "master", BRIDGE)
    known = plan.rate_bit_s, plan.burst_bytes, plan.queue_bytes, plan.mark_bytes
    to_left = MarkingQueue(other, *known)
    try:
        return to_left, MarkingQueue(one, *known)
    except BaseException:
        to_left.close()
        raise
