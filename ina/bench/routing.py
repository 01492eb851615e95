"""Two jobs of DDP over two spines, by placement: real packets through soft switches.

The network is ``examples/topologies/two_spines.toml``; of its uplinks one, between the first leaf
and the first spine, may be narrower. Both jobs have ranks in all racks and run at once; Gloo's ring
takes the same links, where frames between racks go over the first spine.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ina.bench import limits
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.standing import own_name
from ina.emulate.emulation import Emulation, emulate
from ina.emulate.job import choose_hosts, run_job
from ina.emulate.load import load_topology
from ina.emulate.nodes import controller_config
from ina.emulate.topology import EmulatedLink, Topology
from ina.errors import InaError

GLOO = "gloo"
JOBS = (("h1", "h2", "h4", "h5", "h7", "h8"), ("h3", "h6", "h9"))
"""Hosts of each."""
NARROW = ("leaf1", "spine1")
"""The ends of the cable that may be slower than all others."""
START_UP_S = 120.0
STEP_S = 20.0
"""The longest that a step may take."""
_WORKER = "ina.bench.torch.routed"


@dataclass(frozen=True)
class RoutingCase:
    """What is the same in all rounds."""

    link_bit_s: float
    placements: Sequence[str]
    rounds: int
    steps: int
    """Of each job in a round."""
    width: int
    """Of the model's layers."""
    topology: Path
    """The network's file."""


@dataclass(frozen=True)
class PlacementRow:
    """One job, placed by one policy; or over Gloo."""

    uplink: str
    """Rate of the narrow one."""
    placement: str
    job: int
    workers: int
    gradient_bytes: int
    step_s: float
    """Of rank 0; median of all rounds' steps."""
    step_low_s: float
    """First quartile."""
    step_high_s: float
    samples: int
    limit_s: float
    """The least that both jobs' gradients take, on a host's link or on those out of a rack."""
    limit_share: float
    """limit_s / step_s: below 1 also because of what is computed."""
    wrong: int
    """Integers that were not the sum of the ranks', and ranks and rounds of other parameters."""


def network(case: RoutingCase, uplink_bit_s: float) -> Topology:
    """Its controller places a job by the policy that the job's name begins with."""
    topology = load_topology(case.topology)
    rules = [{"name": f"{it}-*", "placement": it} for it in case.placements if it != GLOO]

    def shaped(link: EmulatedLink) -> EmulatedLink:
        is_narrow = tuple(end.node for end in link.ends) == NARROW
        rate_bit_s = uplink_bit_s if is_narrow else case.link_bit_s
        return replace(link, bandwidth_mbit=rate_bit_s / 1e6)

    return replace(
        topology,
        name=own_name(),
        links=tuple(map(shaped, topology.links)),
        controller={**topology.controller, "job": rules},
    )


def measure(
    case: RoutingCase,
    uplink: str,
    uplink_bit_s: float,
    say: Callable[[str], None],
    on_round: Callable[[str], None],
) -> list[PlacementRow]:
    """A row for each placement and job; the placements take turns. Raises InaError."""
    topology = network(case, uplink_bit_s)
    values = controller_config(topology).switch.values
    rounds: dict[str, list[list[dict[str, Any]]]] = {it: [] for it in case.placements}
    with _up(topology, say) as emulation:
        for number in range(case.rounds):
            for placement in case.placements:
                told = _both(emulation, case, placement, number)
                rounds[placement].append(told)
                steps = [f"{1e3 * spread(it['step_s']).median:.0f} ms" for it in told]
                on_round(f"uplink {uplink}, {placement}: {', '.join(steps)}")
    return [
        _row(case, uplink, uplink_bit_s, values, rounds, placement, job)
        for placement in case.placements
        for job in range(len(JOBS))
    ]


@contextmanager
def _up(topology: Topology, say: Callable[[str], None]) -> Iterator[Emulation]:
    with (
        tempfile.TemporaryDirectory(prefix="ina-bench-") as folder,
        emulate(topology, Path(folder), say) as emulation,
    ):
        yield emulation


def _both(
    emulation: Emulation, case: RoutingCase, placement: str, number: int
) -> list[dict[str, Any]]:
    """What the jobs' first ranks said, of one round."""

    def run(job: int) -> dict[str, Any]:
        said: list[str] = []
        command = [
            *("env", f"INA_JOB={placement}-{number}-{job}", sys.executable, "-m", _WORKER),
            *(f"--backend={GLOO if placement == GLOO else 'ina'}", f"--steps={case.steps}"),
            f"--width={case.width}",
        ]
        run_job(
            emulation.state,
            choose_hosts(emulation.state, JOBS[job]),
            command,
            timeout_s=START_UP_S + STEP_S * case.steps,
            on_text=said.append,
        )
        return told("".join(said), job)

    emulation.check()
    with ThreadPoolExecutor(len(JOBS)) as pool:
        return list(pool.map(run, range(len(JOBS))))


def told(text: str, job: int) -> dict[str, Any]:
    """The worker's line. Raises InaError: there is none."""
    for line in text.splitlines():
        if line.startswith('{"kind": "routed"'):
            found: dict[str, Any] = json.loads(line)
            return found
    raise InaError(f"bench routing: rank 0 of job {job} said nothing")


def limit_s(case: RoutingCase, uplink_bit_s: float, wire_bytes: Sequence[float], job: int) -> float:
    """Seconds of one job's step at least. ``wire_bytes``: of a step of each job, on a link."""
    out_of_rack_bit_s = case.link_bit_s + uplink_bit_s
    return max(
        limits.link_s(wire_bytes[job], case.link_bit_s),
        limits.link_s(sum(wire_bytes), out_of_rack_bit_s),
    )


def _row(
    case: RoutingCase,
    uplink: str,
    uplink_bit_s: float,
    values: int,
    rounds: dict[str, list[list[dict[str, Any]]]],
    placement: str,
    job: int,
) -> PlacementRow:
    mine = [told[job] for told in rounds[placement]]
    (elems,) = {it["elems"] for it in mine}
    payload_bytes = elems * 4
    wire_bytes = [
        limits.ring_wire_bytes(payload_bytes, len(hosts))
        if placement == GLOO
        else limits.ina_wire_bytes(elems, values)
        for hosts in JOBS
    ]
    steps = spread([step_s for it in mine for step_s in it["step_s"]])
    least_s = limit_s(case, uplink_bit_s, wire_bytes, job)
    # Wherever the network sums them, sums of one job are the same.
    want = next(
        (told[job]["parameters"] for name in rounds if name != GLOO for told in rounds[name]), ""
    )
    others = sum(it["parameters"] != want for it in mine) if placement != GLOO else 0
    return PlacementRow(
        uplink=uplink,
        placement=placement,
        job=job,
        workers=len(JOBS[job]),
        gradient_bytes=payload_bytes,
        step_s=steps.median,
        step_low_s=steps.low,
        step_high_s=steps.high,
        samples=steps.count,
        limit_s=least_s,
        limit_share=least_s / steps.median,
        wrong=sum(it["wrong"] for it in mine) + others,
    )


def ratios(rows: Sequence[PlacementRow], uplink: str) -> list[Ratio]:
    """How many times as fast ``ina`` is as each other, by the mean of the jobs; and the limit."""

    def mean_s(placement: str) -> float:
        steps_s = [row.step_s for row in rows if row.placement == placement]
        return sum(steps_s) / len(steps_s)

    names = list(dict.fromkeys(row.placement for row in rows))
    if "ina" not in names:
        return []
    own = [row for row in rows if row.placement == "ina"]
    return [
        *(
            Ratio(f"uplink {uplink} ina/{it}", mean_s(it) / mean_s("ina"))
            for it in names
            if it != "ina"
        ),
        Ratio(f"uplink {uplink} ina/limit", sum(row.limit_share for row in own) / len(own)),
    ]
