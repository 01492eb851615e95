"""Windows that the controller manages: jobs that come and go change those of jobs that run."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from ina.controller.config import Config, JobsConfig, TenantConfig, WindowsConfig
from ina.controller.config.rules import JobRule
from ina.controller.windows.uses import packet_bits
from ina.fabric.shapes import star
from ina.host.options import WorkerOptions
from ina.rpc import controller_pb2 as pb2
from ina.sim.errors import ScenarioError
from ina.sim.fabric import VirtualFabric
from ina.sim.loop import VirtualLoop
from ina.sim.plane import ControlPlane, config_of
from ina.sim.rank import Rank
from ina.sim.reading import make
from ina.sim.run import Simulation
from ina.sim.topology import laid
from ina.sim.ways import Way
from tests.worlds.virtual.controlled_star import new_job, run, started

HOSTS = ("h1", "h2")
SLOTS = 512
W = SLOTS // 2
RATE = 4 * 10**7
DELAY_NS = 1_250_000
BITS = packet_bits(64)
LEARNT_S = 0.8
"""Two heartbeats: the controller knows the round trips."""


@contextlib.contextmanager
def slow_plane(
    rules: Sequence[JobRule] = (), tenants: dict[str, TenantConfig] | None = None
) -> Iterator[ControlPlane]:
    """Hosts at 40 Mbit/s; a round trip is long enough for windows to differ."""
    topology = laid(star(2), Way(bits_per_s=RATE, delay_ns=DELAY_NS, queue_bytes=1 << 22))
    with VirtualFabric(topology, seed=1) as fabric, VirtualLoop(fabric.network, limit_s=60) as loop:
        config = config_of(
            fabric,
            jobs=JobsConfig(lease_s=1.0, slots=SLOTS),
            congestion={"algorithm": "fixed"},
            windows=WindowsConfig(caps="max-min"),
            job_rules=tuple(rules),
            tenants=tenants or {},
        )
        with ControlPlane(loop, fabric, seed=1, config=config) as plane:
            yield plane


class Load:
    """A job that reduces all along; what it gets is checked."""

    def __init__(self, ranks: list[Rank]) -> None:
        self.ranks = ranks
        self.sums = 0
        self._ends = False
        self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        while not self._ends:
            self.sums += 1
            arrays = [
                np.arange(64 * 1000, dtype=np.int32) * (rank.seat.rank + self.sums)
                for rank in self.ranks
            ]
            outs = await asyncio.gather(
                *(rank.all_reduce(array) for rank, array in zip(self.ranks, arrays, strict=True))
            )
            for out in outs:
                np.testing.assert_array_equal(out, sum(arrays))

    async def end(self) -> None:
        self._ends = True
        await self._task
        await asyncio.gather(*(rank.leave() for rank in self.ranks))


class Words:
    """What a rank is told, and when."""

    def __init__(self, plane: ControlPlane, rank: Rank) -> None:
        self.heard: list[tuple[float, pb2.Windows]] = []
        assert rank.manner is not None
        windows = rank.manner.windows
        take = windows.take

        def heard(word: pb2.Windows, transport: object) -> None:
            self.heard.append((plane.loop.time(), word))
            take(word, transport)  # type: ignore[arg-type]

        windows.take = heard  # type: ignore[method-assign]

    @property
    def caps(self) -> list[int]:
        return [word.most_packets for _, word in self.heard]


def shown(plane: ControlPlane, name: str) -> pb2.JobWindows:
    assert plane.primary is not None
    assert plane.primary.supervisor is not None
    term = plane.primary.supervisor.term
    assert term is not None
    windows = term.windows.show(term.registry.get(name))
    assert windows is not None
    return windows


def limits(ranks: Sequence[Rank]) -> list[int]:
    return [rank.worker.in_flight_limit for rank in ranks if rank.worker is not None]


def test_a_job_that_comes_caps_one_that_runs_within_a_round_trip_until_it_goes() -> None:
    async def scenario(plane: ControlPlane) -> None:
        await started(plane)
        first = Load(await new_job(plane, "first", HOSTS))
        words = Words(plane, first.ranks[0])
        worker = first.ranks[0].worker
        assert worker is not None
        await asyncio.sleep(LEARNT_S)
        assert limits(first.ranks) == [W, W]
        assert words.caps == [0], "alone it is not capped"
        second = Load(await new_job(plane, "second", HOSTS))
        while len(words.heard) < 2:
            await asyncio.sleep(0.001)
        # Two jobs of one weight: half of the link, twice what that takes in a round trip.
        round_trip_s = shown(plane, "first").round_trip_s
        assert 2 * DELAY_NS < round_trip_s * 1e9 < 3 * DELAY_NS
        _, cap = words.caps
        assert cap == pytest.approx(2 * RATE / 2 * round_trip_s / BITS, abs=1)
        told_s, before_s = words.heard[1][0], worker.stats().mean_ns / 1e9
        assert worker.in_flight_limit == cap
        while worker.in_flight > cap:
            await asyncio.sleep(0.001)
        assert plane.loop.time() - told_s <= before_s + 0.001
        await asyncio.sleep(LEARNT_S)
        assert limits(first.ranks) == [cap, cap]
        assert limits(second.ranks) == [shown(plane, "second").wanted.most_packets] * 2
        seen = shown(plane, "first")
        assert seen.bottleneck in ("10.0.0.1 > s1", "s1 > 10.0.0.1")
        assert seen.share_bits_per_s == pytest.approx(RATE / 2)
        goodput = [it.goodput_bits_per_s for it in seen.ranks]
        assert goodput == pytest.approx([RATE / 2] * 2, rel=0.15), "it has what it is to have"
        assert (seen.limited_by, f"the cap is {cap} packets" in seen.why) == ("link", True)
        assert [it.most_packets for it in seen.ranks] == [W, W]
        assert [it.least_packets for it in seen.ranks] == [cap, cap]
        await second.end()
        while worker.in_flight_limit < W:
            await asyncio.sleep(0.001)
        assert words.caps == [0, cap, 0]
        sums = first.sums
        await asyncio.sleep(0.5)
        assert first.sums > sums
        await first.end()

    with slow_plane() as plane:
        run(plane, scenario(plane))


def test_shares_go_by_weight_and_algorithms_by_name_tenant_and_reload() -> None:
    rules = [JobRule("heavy*", weight=3.0, congestion={"algorithm": "fixed", "packets": 200})]
    tenants = {"t": TenantConfig(congestion={"algorithm": "fixed", "packets": 100})}

    async def scenario(plane: ControlPlane) -> None:
        await started(plane)
        options = WorkerOptions(tenant="t", timeout_s=60.0)
        heavy = Load(await new_job(plane, "heavy-1", HOSTS, options=options))
        light = Load(await new_job(plane, "light", HOSTS, options=options))
        assert limits(heavy.ranks) == [200, 200]
        assert limits(light.ranks) == [100, 100]
        words = Words(plane, heavy.ranks[1])
        await asyncio.sleep(LEARNT_S)
        by_name = {name: shown(plane, name) for name in ("heavy-1", "light")}
        share = {name: it.share_bits_per_s for name, it in by_name.items()}
        assert share == pytest.approx({"heavy-1": 0.75 * RATE, "light": 0.25 * RATE})
        assert limits(light.ranks) == [by_name["light"].wanted.most_packets] * 2
        assert by_name["light"].wanted.most_packets < 60
        # The file changes: no caps, and another algorithm for all of that tenant.
        changed = replace(
            plane.config,
            windows=WindowsConfig(),
            job_rules=(),
            tenants={"t": TenantConfig(congestion={"algorithm": "fixed", "packets": 33})},
        )
        told = len(words.heard)
        reconfigure(plane, changed)
        while len(words.heard) == told:
            await asyncio.sleep(0.001)
        assert len(words.heard) == told + 1, "all that has changed is one word"
        await asyncio.sleep(LEARNT_S)
        assert limits([*heavy.ranks, *light.ranks]) == [33] * 4
        manner, worker = heavy.ranks[1].manner, heavy.ranks[1].worker
        assert manner is not None
        assert worker is not None
        state = manner.windows.state(worker.stats())
        assert (state.number, state.most_packets) == (words.heard[-1][1].number, 0)
        assert dict(state.congestion.options) == {"packets": 33}
        await heavy.end()
        await light.end()

    with slow_plane(rules, tenants) as plane:
        run(plane, scenario(plane))


def reconfigure(plane: ControlPlane, config: Config) -> None:
    assert plane.primary is not None
    assert plane.primary.supervisor is not None
    plane.primary.supervisor.reconfigure(config)


def test_windows_outlive_a_controller_and_a_change_of_mapping() -> None:
    async def scenario(plane: ControlPlane) -> None:
        await started(plane)
        first = Load(await new_job(plane, "first", HOSTS))
        second = Load(await new_job(plane, "second", HOSTS))
        await asyncio.sleep(LEARNT_S)
        (cap, _) = limits(first.ranks)
        assert cap < W
        controller = plane.controllers[0]
        await controller.resize("first", SLOTS // 2)
        await asyncio.sleep(1.0)
        assert [rank.worker.window for rank in first.ranks if rank.worker] == [W // 2] * 2
        assert max(limits(first.ranks)) <= W // 2
        controller.kill()
        await asyncio.sleep(0.5)
        await controller.start()
        # It knows no round trip yet, and what it says on its streams is no cap; then it is one.
        await asyncio.sleep(3 * LEARNT_S)
        assert limits(first.ranks) == [shown(plane, "first").wanted.most_packets] * 2
        await first.end()
        await second.end()

    with slow_plane() as plane:
        run(plane, scenario(plane))


JOBS = [
    {"name": "a", "workers": 2, "hosts": ["h1", "h2"], "steps": 80, "weight": 2.0},
    {
        **{"name": "b", "workers": 2, "hosts": ["h1", "h2"], "steps": 25, "at_ms": [1000]},
        "congestion": {"algorithm": "fixed", "packets": 40},
    },
]
SCENARIO = {
    "topology": {"hosts": 2},
    "link": {"rate_gbit": 0.04, "delay_us": 1250, "queue_kib": 4096},
    "congestion": {"algorithm": "fixed"},
    "controller": {"caps": "max-min", "slack": 1.5, "lease_s": 1},
    "limit_s": 30,
}
TENSORS = [{"elems": 30_000, "dtype": "int32"}]


def test_a_scenario_has_weights_and_algorithms_by_job_and_caps_by_its_controller() -> None:
    document = {**SCENARIO, "job": [{**job, "tensors": TENSORS} for job in JOBS]}

    def report() -> tuple[list[tuple[str, int, int]], list[float]]:
        found = Simulation(make(document), 1, mend_at_s=10.0).run()
        assert found.violations == []
        assert found.sums_checked == 2 * (80 + 25)
        jobs = [(job.name, job.window_packets, job.in_flight_limit_min) for job in found.jobs]
        return jobs, [job.took_s for job in found.jobs]

    (first, second), took_s = report()
    assert first[:2] == ("a", W)
    assert first[2] == pytest.approx(2 * second[2], abs=1), "while both are there, by weight"
    assert first[2] < 40, "a bandwidth-delay product is 38 packets"
    assert second[:2] == ("b", W)
    assert ([first, second], took_s) == report(), "a seed gives the same run"


def test_an_operator_changes_windows_of_a_scenario_now_and_then() -> None:
    order = {
        "what": "windows",
        "where": "a",
        "every_ms": 20,
        "congestion": {"algorithm": "fixed", "packets": 7},
    }
    back = {**order, "congestion": {}}
    job = {**JOBS[0], "steps": 10, "tensors": TENSORS}
    document = {**SCENARIO, "job": [job], "fault": [order, back]}
    found = Simulation(make(document), 1, mend_at_s=10.0).run()
    assert found.violations == []
    assert found.sums_checked == 2 * 10
    assert found.jobs[0].in_flight_limit_min == 7


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"job": [{**JOBS[0], "weight": 0}]}, "job 'a': weight = 0"),
        ({"job": [{**JOBS[0], "congestion": {"algorithm": "x"}}]}, "congestion: .*'x'"),
        ({"controller": {"slack": 0.5}}, "controller.slack = 0.5"),
        ({"controller": {"caps": "some"}}, "caps"),
        (
            {"fault": [{"what": "windows", "where": "c", "at_ms": 1}]},
            "where = 'c': want a, b",
        ),
        (
            {
                "fault": [
                    {"what": "windows", "where": "a", "at_ms": 1, "congestion": {"algorithm": "x"}}
                ]
            },
            "'x'",
        ),
    ],
)
def test_what_is_wrong_with_a_scenario_is_said(changed: dict[str, object], error: str) -> None:
    with pytest.raises(ScenarioError, match=error):
        make({**SCENARIO, "job": JOBS, **changed})
