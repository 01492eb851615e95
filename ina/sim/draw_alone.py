"""One job on clean links, for the fuzzer: with nothing in its way, it must fill them."""

from __future__ import annotations

import random

from ina.sim.scenario import JobSpec, LinkSpec, Scenario, TensorSpec, TopologySpec


def alone(rng: random.Random) -> Scenario:
    """As many workers as hosts at one switch, a window that has room, and tensors of megabytes."""
    workers = rng.choice((2, 4, 8))
    mebibytes = min(rng.choice((1, 2, 2, 4)), 8 // workers)
    return Scenario(
        values=256,
        topology=TopologySpec(hosts=workers),
        link=LinkSpec(
            rate_gbit=rng.choice((1.0, 1.0, 10.0)),
            delay_us=rng.choice((1.0, 5.0, 20.0)),
            queue_kib=rng.choice((256.0, 1024.0)),
        ),
        congestion=rng.choice(({}, {}, {"algorithm": "adaptive"}, {"algorithm": "fixed"})),
        job=[
            JobSpec(
                name="j0",
                workers=workers,
                hosts=[f"h{i + 1}" for i in range(workers)],
                steps=4,
                tensors=[TensorSpec(elems=mebibytes << 18)],
                compute_ms=rng.choice((0.0, 1.0)),
            )
        ],
    )
