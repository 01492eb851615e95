"""Jobs of mode transparent at a controller, with its program in a soft switch."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import grpc
import pytest

from ina.controller.config import make_config
from ina.controller.embedded import Embedded
from ina.controller.errors import ConfigError
from ina.controller.switches.link import standing_rows
from ina.controller.switches.writer import SwitchWriter
from ina.p4 import names
from ina.rpc import controller_pb2 as pb2
from ina.tables.session import SwitchSession
from ina.tables.values import Entry
from tests.worlds.fakes.switches import of_jobs
from tests.worlds.fakes.workers import Workers, is_clean, workers_of

NETWORKS = {"rings": "10.77.0.0/16", "bystanders": ["192.168.0.0/16", "10.78.0.0/16"]}
LANES = 2
SWITCH = {"mode": names.TRANSPARENT, **NETWORKS}


@pytest.fixture
def workers() -> Iterator[Workers]:
    config: dict[str, Any] = {"switch": NETWORKS}
    with (
        Embedded(values=56, slots=2 * LANES, mode=names.TRANSPARENT, config=config) as embedded,
        workers_of(embedded.controller_addr) as them,
    ):
        yield them


def joining(
    rank: int, pairs: int = 2 * LANES, *, first: int = 0x100, queue_pair: int = 0
) -> pb2.JoinRequest:
    request = pb2.JoinRequest(
        name="j",
        rank=rank,
        host=f"127.0.0.{rank + 1}",
        udp_port=4000 + rank,
        timeout_s=20.0,
        queue_pair=queue_pair,
    )
    request.ring_pairs.extend(first * (rank + 1) + it for it in range(pairs))
    return request


def test_a_ring_is_installed_and_leaves_nothing(workers: Workers) -> None:
    standing = {(it.table, it.match, it.action) for it in workers.show().entries}
    assert standing == {
        ("own_addresses", "dst_addr=10.77.0.0/16", "ours()"),
        ("bystanders", "dst_addr=192.168.0.0/16", "pass()"),
        ("bystanders", "dst_addr=10.78.0.0/16", "pass()"),
    }
    workers.create("j", 3)
    with ThreadPoolExecutor(3) as pool:
        requests = [joining(rank) for rank in range(3)]
        replies = list(pool.map(lambda it: workers.stub.Join(it, timeout=30.0), requests))
    shown = of_jobs(workers.show())
    assert {it.table for it in shown} == {
        *("jobs", "members", "receivers", "replies", "multicast group")
    }
    flows = [str(it.match) for it in shown if it.table == "members"]
    assert len(flows) == 3 * LANES
    for rank in range(3):
        to = (rank + 1) % 3
        for lane in range(LANES):
            pair = 0x100 * (to + 1) + LANES + lane
            ends = f"src_addr=10.77.0.{32 + rank} dst_addr=10.77.0.{32 + to} dest_qp={pair}"
            assert sum(ends in it for it in flows) == 1
    for rank, reply in enumerate(replies):
        workers.keys["j", reply.epoch, rank] = reply.member_key
        workers.leave("j", rank, reply.epoch)
    assert is_clean(workers)


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        (joining(0, 0), "it has 0 queue pairs of a ring, which wants two for each lane"),
        (joining(0, 3), "it has 3 queue pairs of a ring"),
        (joining(0, queue_pair=5), "it has one queue pair, and the job's mode 'transparent' wants"),
        (joining(0, first=1 << 24), "queue pair 16777216 has more than 24 bits"),
    ],
)
def test_who_has_not_what_it_needs_is_refused(
    workers: Workers, request_: pb2.JoinRequest, says: str
) -> None:
    workers.create("j", 2)
    with pytest.raises(grpc.RpcError) as refused:
        workers.stub.Join(request_, timeout=30.0)
    assert says in str(refused.value.details())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rings": ""}, r"switch\.rings: '' is not an IPv4 network"),
        ({"rings": "10.77.0.1/16"}, r"switch\.rings: '10.77.0.1/16' is not an IPv4 network"),
        ({"rings": "10.77.0.0/20"}, r"switch\.rings: 10.77.0.0/20 is too small: want /19, 32"),
        (
            {"bystanders": ["10.0.0.0/8"]},
            r"switch\.bystanders: 10.0.0.0/8 overlaps 10.77.0.0/16, which is rings'",
        ),
        ({"mode": names.ROCE}, r"switch\.rings: only with mode 'transparent'"),
        ({"values": 256}, r"values: 256 is not 56, 248 or 1016"),
    ],
)
def test_a_configuration_that_would_not_do(changes: dict[str, Any], says: str) -> None:
    document = {"switch": SWITCH | changes, "jobs": {"mode": names.TRANSPARENT}}
    with pytest.raises(ConfigError, match=says):
        make_config(document, "test")


def test_a_configuration_that_does() -> None:
    config = make_config({"switch": SWITCH, "jobs": {"mode": names.TRANSPARENT}}, "test")
    assert config.switch.values == 248
    usual = make_config(
        {"switch": {"mode": names.TRANSPARENT}, "jobs": {"mode": names.TRANSPARENT}}, "test"
    )
    assert usual.switch.rings == "10.128.0.0/19"


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


async def test_a_network_that_is_no_bystanders_any_more_is_closed_first() -> None:
    former = standing_rows(make_config({"switch": SWITCH}, "test").switch)
    others = SWITCH | {"rings": "10.78.0.0/16", "bystanders": ["192.168.0.0/16"]}
    wanted = standing_rows(make_config({"switch": others}, "test").switch)
    table = Table(*former)
    writer = SwitchWriter(cast(SwitchSession, table), names.TRANSPARENT)
    await writer.put_standing(wanted, former)
    assert table.said == ["delete", "insert"]
    by_table = {(it.table, dict(it.match)["dst_addr"]) for it in table.rows}
    assert by_table == {
        (names.OWN_ADDRESSES, "10.77.0.0/16"),  # what others have written stays
        (names.OWN_ADDRESSES, "10.78.0.0/16"),
        (names.BYSTANDERS, "192.168.0.0/16"),
    }
    await writer.put_standing(wanted, table.rows)
    assert table.said == ["delete", "insert"]
