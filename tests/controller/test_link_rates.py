"""What jobs' packets take of links now, by their workers' reports."""

from __future__ import annotations

import pytest

from ina.controller.config.topology import fabric_of
from ina.controller.job import JobSpec
from ina.controller.windows.job_windows import JobWindows
from ina.controller.windows.uses import UsedLink, packet_bits
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.racks import CONFIG, Racks

NOW_S = [0.0]


def report(windows: JobWindows, racks: Racks, results: int) -> None:
    job = racks.registry.get("j")
    progress = pb2.Progress(busy_s=1.0)
    progress.windows.results = results
    for rank in job.members:
        windows.hear(job, rank, progress)


async def test_a_link_has_the_packets_of_the_trees_over_it() -> None:
    racks = Racks()
    await racks.start()
    windows = JobWindows(racks.coordinator, fabric_of(CONFIG), CONFIG, clock=lambda: NOW_S[0])
    assert not windows.link_bits_per_s()
    await racks.coordinator.create(JobSpec("j", 4), 0.0)
    for call in await racks.join_all("j", (1, 1, 2, 2)):
        await call
    report(windows, racks, 0)
    NOW_S[0] = 2.0
    report(windows, racks, 1000)
    job = racks.registry.get("j")
    values = racks.registry.switches[job.switch].values
    rate = 1000 * packet_bits(values) / 2.0
    found = windows.link_bits_per_s()
    for leaf in ("leaf1", "leaf2"):
        assert found[UsedLink(leaf, "spine")] == pytest.approx(rate)
        assert found[UsedLink("spine", leaf)] == pytest.approx(rate)
    NOW_S[0] = 4.0
    report(windows, racks, 1000)  # its host computes
    assert not any(windows.link_bits_per_s().values())
