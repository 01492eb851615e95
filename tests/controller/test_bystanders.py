"""Who gets RoCEv2 traffic across a switch of mode transparent that is not of its rings."""

from __future__ import annotations

from typing import Any, cast

import pytest

from ina import modes
from ina.controller.config import make_config
from ina.controller.embedded import Embedded
from ina.controller.errors import ConfigError
from ina.controller.switches.writer import SwitchWriter
from ina.p4 import names
from ina.tables.session import SwitchSession
from ina.tables.values import Entry

SWITCH = {"mode": names.TRANSPARENT, "bystanders": ["192.168.0.0/16", "10.78.0.0/16"]}
JOBS = {"mode": names.TRANSPARENT}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"bystanders": ["10.78.0.1/16"]}, r"bystanders: '10.78.0.1/16' is not an IPv4 network"),
        (
            {"bystanders": ["10.0.0.0/8"]},
            r"switch\.bystanders: 10.0.0.0/8 overlaps 10.128.0.0/19, which is rings'",
        ),
        (
            {"bystanders": [f"192.{it >> 8}.{it & 255}.0/24" for it in range(1025)]},
            r"bystanders: 1025 networks: at most 1024",
        ),
        ({"mode": names.ROCE}, r"switch\.bystanders: only with mode 'transparent'"),
    ],
)
def test_networks_that_would_not_do(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        make_config({"switch": SWITCH | changes, "jobs": JOBS}, "test")


def passing(*networks: str) -> tuple[Entry, ...]:
    switch = make_config({"switch": SWITCH | {"bystanders": networks}, "jobs": JOBS}, "test").switch
    return modes.of(switch.mode).passing(switch.bystanders)


class Table:
    """A switch's rows."""

    def __init__(self, *rows: Entry) -> None:
        self.rows = list(rows)
        self.said: list[str] = []

    async def insert(self, items: list[Entry]) -> None:
        self.said.append("insert")
        self.rows += items

    async def delete(self, items: list[Entry]) -> None:
        self.said.append("delete")
        self.rows = [it for it in self.rows if it not in items]


async def test_a_network_that_is_none_any_more_is_closed_first() -> None:
    former, wanted = (
        passing("192.168.0.0/16", "10.78.0.0/16"),
        passing("192.168.0.0/16", "10.9.0.0/16"),
    )
    table = Table(*former)
    writer = SwitchWriter(cast(SwitchSession, table), names.TRANSPARENT)
    await writer.put_passing(wanted, former)
    assert table.said == ["delete", "insert"]
    assert set(table.rows) == set(wanted)
    await writer.put_passing(wanted, table.rows)
    assert table.said == ["delete", "insert"]


def test_a_switch_is_told() -> None:
    config: dict[str, Any] = {"switch": {"bystanders": ["192.168.0.0/16"]}}
    with Embedded(values=56, mode=names.TRANSPARENT, config=config) as embedded:
        found = {it.match for it in embedded.show().entries if it.table == "bystanders"}
    assert found == {"dst_addr=192.168.0.0/16"}
