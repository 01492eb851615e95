"""Two switches, each with a controller, and by mistake one store."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ina.cli import main
from ina.controller.app import ControllerApp
from ina.controller.config import Config
from ina.controller.errors import OtherSwitchError
from ina.controller.job import JobSpec
from ina.controller.service import supervisor
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.worlds.loops import drive
from tests.worlds.processes.controllers import config, coordinator, role, run_job, until

pytestmark = pytest.mark.usefixtures("quick_retries")


def at(settings: Config, udp_port: int) -> Config:
    """With another address of the switch towards the workers."""
    return settings.with_switch(data_udp_port=udp_port)


def test_the_one_that_was_there_before_stands_by_and_says_why(
    store_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(supervisor, "MAX_PAUSE_S", 0.02)
    settings: list[Config] = []

    async def scenario() -> None:
        with SoftSwitch([UdpPort(1)]) as one, SoftSwitch([UdpPort(1)]) as two:
            settings.extend(
                at(config(switch.grpc_addr, store_url, 1), port)
                for switch, port in ((one, 17001), (two, 17002))
            )
            async with ControllerApp(settings[0]) as first, ControllerApp(settings[1]) as second:
                with pytest.raises(OtherSwitchError, match="of its own, and start this controller"):
                    await coordinator(first).create(JobSpec("late", 2), 0.0)
                await until(lambda: role(first) == "standby")
                await asyncio.sleep(0.2)  # ten attempts
                assert role(first) == "standby"
                status = ["controller", "status", "--controller", first.listen_addr]
                assert await asyncio.to_thread(main.run, status) == 1
                assert (await run_job(second, "j")).world_size == 2
            async with ControllerApp(settings[0]) as first:  # it was started again
                assert role(first) == "primary"

    with caplog.at_level(logging.INFO):
        drive(scenario())
    lines = [r.getMessage() for r in caplog.records if "the switch at" in r.getMessage()]
    said = " ".join(capsys.readouterr().out.split())  # lines end where the store's path is long
    assert "standby (store " in said
    assert "give each switch a store of its own" in said
    taken, refused, taken_back = lines
    assert taken.endswith("is that of the one at 127.0.0.1:17002 now")
    assert refused.startswith("standby: store ")
    assert "claimed it for the switch at 127.0.0.1:17002, and this controller's is at" in refused
    assert taken_back.endswith("is that of the one at 127.0.0.1:17001 now")


async def test_a_standby_that_names_the_switch_otherwise_does_not_start(store_url: str) -> None:
    with SoftSwitch([UdpPort(1)]) as switch:
        async with ControllerApp(at(config(switch.grpc_addr, store_url, 5), 17001)):
            with pytest.raises(OtherSwitchError, match=r"for the switch at 127\.0\.0\.1:17001"):
                async with ControllerApp(at(config(switch.grpc_addr, store_url, 3), 17002)):
                    pass
