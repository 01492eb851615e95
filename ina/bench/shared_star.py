"""A star of network namespaces whose switch shares slots among jobs, with an aggregator.

Hosts and links are those of :mod:`ina.bench.star`, and so is the aggregator: a namespace behind a
link of its own. The switch is a process of its own, which can keep each packet for a while before
it leaves: as long as a packet takes to the switch and back where the links are so long. A sum made
at the switch then takes that time, and one that goes up to the aggregator twice that, as it would
over an aggregator's link of the same length.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from ina.bench.standing import P4RUNTIME_PORT, standing
from ina.bench.star import (
    CENTRE,
    CONTROLLER,
    NET,
    QUEUE_BYTES,
    StarNetwork,
    build,
    host_of,
    network_of,
    plug_in,
)
from ina.emulate import remains
from ina.protocol.spec import UDP_PORT

AGGREGATOR = "10.77.0.200"
MAX_WORKERS = 64
"""Of all jobs."""
QUEUED, PASSED = "queued", "passed"
"""Tenants: of jobs that wait until the others' slots are free; and of those that may claim one slot
of a switch, all together, so that the aggregator does their sums."""
LEAST_SLOTS = 16
"""Of a job that does not say how many."""
START_UP_S = 120.0
"""What ranks may need beyond the time to measure."""
AGGREGATOR_NAME = "agg"


@dataclass(frozen=True)
class StarShape:
    """What the star is like."""

    workers: int
    """Of all jobs, each on a host of its own."""
    link: str
    """What to call the rate."""
    rate_bit_s: float | None
    """Of each host's link, each way; None: unshaped."""
    aggregator_bit_s: float | None
    """Of the aggregator's."""
    values: int
    """A packet."""
    slots: int
    """That jobs of mode ``shared`` share, and that jobs of tenant QUEUED have together."""
    round_trip_us: int
    """To the switch and back, beside what links and the machine take."""
    slot_age_us: int = 0
    """0: as is usual."""


@contextlib.contextmanager
def shared_star(
    plan: StarShape, progress: Callable[[str], None] = lambda step: None
) -> Iterator[StarNetwork]:
    """Such a star with its controller, until the block ends; then nothing is left.

    Raises MissingToolError (needs root, ip and tc), EmulationError, NetnsError, UnavailableError,
    DeadlineError.
    """
    names = [f"h{number}" for number in range(1, plan.workers + 1)]
    config = _config(plan)
    with standing([NET, AGGREGATOR_NAME, *names], config) as made:
        hosts = [host_of(made.name, number) for number in range(1, plan.workers + 1)]
        above = remains.HostState(AGGREGATOR_NAME, AGGREGATOR, made.space(AGGREGATOR_NAME))
        progress(f"star of {len(hosts)} namespaces and an aggregator, links {plan.link}")
        build(made.space(NET), hosts, plan.rate_bit_s, QUEUE_BYTES)
        plug_in(above, made.space(NET), [], plan.aggregator_bit_s, QUEUE_BYTES)
        made.start_switch("the soft switch", NET, CENTRE, f"--delay-us={plan.round_trip_us}")
        listen = f"--listen={AGGREGATOR}:{UDP_PORT}"
        at = f"--grpc-addr={AGGREGATOR}:{P4RUNTIME_PORT}"
        made.start("the aggregator", AGGREGATOR_NAME, "aggregator", listen, at)
        made.start_controller("the controller", NET, config)
        yield network_of(made, plan.link, plan.rate_bit_s, hosts)


def shared_switch(plan: StarShape) -> dict[str, Any]:
    """Keys of the controller's table of the switch."""
    return {
        "values": plan.values,
        "mode": "shared",
        "shared_slots": plan.slots,
        "slot_age_us": plan.slot_age_us,
    }


def jobs_tables(plan: StarShape) -> dict[str, Any]:
    """Of the controller's file, about jobs and their tenants."""
    return {
        "jobs": {"policy": "asked", "slots": LEAST_SLOTS},
        "tenants": {"default": {}, QUEUED: {"slots": plan.slots}, PASSED: {"slots": 1}},
    }


def _config(plan: StarShape) -> dict[str, Any]:
    return {
        "listen": CONTROLLER,
        "switch": {
            "grpc_addr": f"{CENTRE}:{P4RUNTIME_PORT}",
            "data_host": CENTRE,
            **shared_switch(plan),
        },
        "aggregator": [
            {
                "name": AGGREGATOR_NAME,
                "grpc_addr": f"{AGGREGATOR}:{P4RUNTIME_PORT}",
                "data_host": AGGREGATOR,
            }
        ],
        **jobs_tables(plan),
    }
