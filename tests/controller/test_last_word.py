"""For how long the switch has been silent is counted from its last word."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ina.controller.config import SwitchConfig
from ina.controller.switches.link import SwitchLink
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.tables import p4runtime
from ina.tables.p4runtime import P4RuntimeSession

SILENT_S = 12.0


@pytest.fixture
def switch() -> Iterator[SoftSwitch]:
    running = SoftSwitch([UdpPort(1, "127.0.0.1")])
    running.start()
    yield running
    running.stop()


def test_it_is_not_counted_from_when_the_controller_noticed() -> None:
    link = SwitchLink(SwitchConfig())
    link.session = cast(Any, SimpleNamespace(heard_s=time.monotonic() - SILENT_S))
    assert link.unreachable_s() == 0.0
    assert link.fails("probe: no answer")
    assert link.unreachable_s() >= SILENT_S
    link.session = None
    assert not link.fails("nobody listens")
    assert link.unreachable_s() >= SILENT_S
    assert link.works()
    assert link.unreachable_s() == 0.0


async def test_each_answer_to_a_probe_is_a_word(
    switch: SoftSwitch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(p4runtime, "PROBE_S", 0.05)

    session = await P4RuntimeSession.connect(switch.grpc_addr, 1)
    for _ in range(2):
        heard_s = session.heard_s
        while session.heard_s == heard_s:
            await asyncio.sleep(0.01)
    switch.stop()
    while session.lost is None:
        await asyncio.sleep(0.01)
    last_s = session.heard_s
    await asyncio.sleep(0.2)
    assert session.heard_s == last_s <= time.monotonic() - 0.2
    await session.close()
