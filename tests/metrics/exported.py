"""Every metric that our collectors export, with its labels; from samples of each."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from prometheus_client.core import Metric

from ina.controller.service.metrics import ControllerCollector
from ina.host.metrics import SessionCollector
from ina.switch.metrics import SwitchCollector
from ina.switch.stats import PortStats, SwitchStats
from ina.torch.metrics import GroupCollector
from tests.metrics.test_controller import SNAPSHOT, counters
from tests.metrics.test_host import FakeSession
from tests.metrics.test_torch import FakeGroup


def families() -> list[Metric]:
    """Of a switch, of a controller with a job, of a session, and of a process group."""
    sessions, session = SessionCollector(), FakeSession()
    sessions.sessions.add(session)
    switch = SwitchCollector(1, lambda: SwitchStats({1: PortStats()}, 0, 0, 0, 0, 0))
    groups, group = GroupCollector(), FakeGroup()
    groups.groups.add(group)
    return [
        *switch.collect(),
        *asyncio.run(_controller()),
        *sessions.collect(),
        *groups.collect(),
    ]


async def _controller() -> Iterable[Metric]:
    collector = ControllerCollector(lambda: SNAPSHOT, counters)
    found = await asyncio.to_thread(lambda: list(collector.collect()))
    await collector.close()
    return found


def labels_by_sample() -> dict[str, frozenset[str]]:
    """``ina_switch_packets_total`` to ``{"port", "direction"}``."""
    found = {
        sample.name: frozenset(sample.labels)
        for family in families()
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    assert found
    return found
