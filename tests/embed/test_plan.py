"""What is planned from a trace, beside the design's figures, and beside what services count."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from ina.embed.asked import Asked, step_of, tables_of
from ina.embed.bags import Bags
from ina.embed.caches import Caches
from ina.embed.errors import TraceError
from ina.embed.generated import generated, mlperf_tables
from ina.embed.hot import least_asks
from ina.embed.plan import PlanOrder, TracePlan, plan
from ina.embed.sharding import VALUE_BYTES, place
from ina.embed.trace import TableTrace, Trace
from ina.extension.embed import ClientConfig, GroupConfig, Node, TableSpec

ORDER = PlanOrder(
    hosts=8,
    samples=512,
    dim=64,
    shard="auto",
    cache_shares=[0.0],
    optimizer="sgd",
)


def planned(zipf: float, samples: int, steps: int, *shares: float) -> TracePlan:
    order = dataclasses.replace(ORDER, samples=samples, cache_shares=[0.0, *shares])
    tables = mlperf_tables(2_000_000, bags=False)
    return plan(generated(tables, steps * 8 * samples, zipf, seed=1), order)


# Of the design: bytes of all_to_all that are left without a cache, of 1,024 samples; in training
# with the best hot rows, of 512, 2,048 and 8,192; and with a cache of 1 % of the rows that are
# asked for most, each asked for once.
DESIGN = {
    0.9: (0.54, {512: 0.54, 2048: 0.45, 8192: 0.35}, 0.36),
    1.05: (0.40, {512: 0.41, 2048: 0.32, 8192: 0.23}, 0.22),
    1.2: (0.26, {512: 0.28, 2048: 0.19, 8192: 0.13}, 0.12),
}


@pytest.mark.long
def test_bytes_are_near_the_design_s() -> None:
    found = planned(1.05, 512, 6)
    assert found.training.share == pytest.approx(0.41, rel=0.1)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("zipf", DESIGN)
def test_bytes_are_near_the_design_s_for_every_law(zipf: float) -> None:
    inference, training, counted = DESIGN[zipf]
    found = planned(zipf, 1024, 60, 0.01)
    assert found.inference[0].share == pytest.approx(inference, rel=0.1)
    assert found.inference[1].share_counted == pytest.approx(counted, rel=0.1)
    for samples, share in training.items():
        assert planned(zipf, samples, 12).training.share == pytest.approx(share, rel=0.1)


def ids_of(*samples: list[int], rows: int = 100) -> TableTrace:
    counts = np.array([len(sample) for sample in samples])
    ids = np.array([row for sample in samples for row in sample], np.int64)
    return TableTrace("a", rows, Bags.of(ids, np.cumsum(counts) - counts, limit=rows))


def one_step(trace: TableTrace, hosts: int, owners: int = 1) -> list[Asked]:
    spec = TableSpec(rows=trace.rows, dim=4, owners=owners)
    return step_of([trace], [spec], hosts, 0, trace.bags.count // hosts)[0]


def test_rows_are_asked_for_once_and_bags_where_that_is_less() -> None:
    of_hosts = one_step(ids_of([3], [3], [5, 6], [6, 7]), hosts=2)
    assert [one.is_by_row for one in of_hosts] == [True, False]  # 1 row of 2; 3 rows, 2 bags
    assert [one.vectors() for one in of_hosts] == [0, 2]  # host 0 owns all
    assert of_hosts[1].vectors(np.array([True, True, False, False])) == 1
    assert of_hosts[1].vectors(np.array([True, False, True, True])) == 1


def test_of_several_owners_each_sends_its_part_of_a_bag() -> None:
    rows = list(range(60))
    (one, _) = one_step(ids_of(rows, rows[::-1], rows[:0], rows[:0]), hosts=2, owners=2)
    assert not one.is_by_row
    assert one.vectors() == 2  # of both bags, what host 1 has


def test_a_row_is_hot_from_where_the_rule_says() -> None:
    """Row 1 is asked for by as many hosts as it needs, row 2 by one less."""
    hosts = 8
    needed = int(np.ceil(least_asks(hosts)))
    step = [[1, 2] if host < needed - 1 else [1] if host < needed else [3] for host in range(hosts)]
    trace = Trace([ids_of(*(row for _ in range(4) for row in step))])
    order = dataclasses.replace(ORDER, samples=1, shard="table")
    # Of one sample a host, bags of two come by bag: rows of theirs are not counted.
    assert plan(trace, order).training.hot_rows == 0
    single = Trace([ids_of(*([row[0]] for _ in range(4) for row in step))])
    found = plan(single, order).training
    assert found.hot_rows == 1
    # Before, all but host 0, who owns them, received and sent one vector a step.
    before = (2 * 7) / 8 * 256
    assert found.share_without_hot == pytest.approx(1.0)
    assert found.received_bytes == pytest.approx((2 * (hosts - needed)) / 8 * 256 + 256)
    assert found.share == pytest.approx(found.received_bytes / before)


def test_a_trace_that_is_too_short_is_refused() -> None:
    with pytest.raises(TraceError, match="has 4 samples: 2 steps of 8 hosts, 512 each, need 8192"):
        plan(Trace([ids_of([1], [2], [3], [4])]), ORDER)


class Group:
    """Nodes that hear each other, in the order of hosts, and ask by row."""

    def __init__(self, specs: list[TableSpec], hosts: int, cache_bytes: int) -> None:
        self.nodes = []
        for host in range(hosts):
            config = GroupConfig(key=1, host=host, hosts=hosts, tables=specs)
            self.nodes.append(Node(config, ClientConfig()))
            self.nodes[-1].resize_cache(cache_bytes)

    def ask(self, asked: Asked) -> None:
        node = self.nodes[asked.host]
        bags = Bags.of(asked.rows, limit=2**32)
        ticket = node.look_up(0, 0, *bags.address, False)
        while not node.is_done(ticket):
            on_their_way = []
            for host, one in enumerate(self.nodes):
                one.poll(0)
                on_their_way += [(host, *packet) for packet in one.take_packets(0)]
            for host, to, packet in on_their_way:
                self.nodes[to].receive(host, packet, 0)
        vectors = np.empty((bags.count, 4), np.float32)
        node.take(ticket, vectors.ctypes.data)


def test_a_cache_has_what_a_service_s_has() -> None:
    hosts, samples, steps, share = 3, 40, 12, 0.1
    trace = generated([(500, 1)], steps * hosts * samples, 1.1, seed=2)
    specs = place(tables_of(trace.tables, 4, "row"), hosts)
    caches = Caches(share, specs, hosts)
    group = Group(specs, hosts, caches.bytes)
    assert caches.bytes == share * 500 * 4 * VALUE_BYTES
    for number in range(steps):
        step = step_of(trace.tables, specs, hosts, number * hosts * samples, samples)
        caches.replay(step, is_measured=True)
        for asked in step[0]:
            assert asked.is_by_row
            group.ask(asked)
    hits = sum(node.cache.hits for node in group.nodes)
    misses = sum(node.cache.misses for node in group.nodes)
    assert hits > 100
    assert caches.hits == hits / (hits + misses)
    assert caches.vectors == misses  # one for each that is not there
