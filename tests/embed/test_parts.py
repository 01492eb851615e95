"""What embeddings are made of: who owns a row, where tables go, first values, bags."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.embed.bags import Bags
from ina.embed.errors import InvalidBagsError, NoSuchRowError, TableError, TooLittleMemoryError
from ina.embed.memory import check_memory
from ina.embed.service import Door, Service
from ina.embed.sharding import Table, place
from ina.embed.start import normal_rows
from ina.extension.embed import GroupConfig, Optimizer, Placement, Rule, TableSpec


@given(st.integers(1, 3000), st.integers(1, 9), st.integers(0, 8), st.integers(1, 9))
def test_each_row_has_one_place(rows: int, hosts: int, first: int, owners: int) -> None:
    owners = min(owners, hosts)
    spec = TableSpec(rows=rows, dim=1, first_owner=first % hosts, owners=owners)
    placement = Placement(spec, hosts)
    seen = set()
    for host in range(hosts):
        for local in range(placement.rows_of(host)):
            row = placement.row_at(host, local)
            assert placement.owner_of(row) == host
            assert placement.local_of(row) == local
            seen.add(row)
    assert seen == set(range(rows))


@pytest.mark.parametrize("rows", [80_000, 100_003, 65_536])
@pytest.mark.parametrize("every", [1, 8, 10, 1000])
def test_rows_that_are_looked_up_most_are_spread(rows: int, every: int) -> None:
    """Small numbers, and multiples of one, are near their share on each of eight hosts."""
    placement = Placement(TableSpec(rows=rows, dim=1, owners=8), 8)
    owners = [placement.owner_of(row) for row in range(0, 64 * every, every)]
    counts = np.bincount(owners, minlength=8)
    assert counts.max() <= 2 * 8
    assert counts.min() >= 4


def test_tables_stay_whole_where_that_is_even() -> None:
    tables = [Table(str(i), 1000, 8) for i in range(8)]
    specs = place(tables, 4)
    assert sorted(spec.first_owner for spec in specs) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert {spec.owners for spec in specs} == {1}


def test_a_table_that_is_too_large_for_one_host_is_spread() -> None:
    large, small = place([Table("large", 100_000, 64), Table("small", 100, 64)], 4)
    assert (large.owners, small.owners) == (4, 1)
    assert place([Table("a", 10, 4, shard="row")], 4)[0].owners == 4
    assert place([Table("a", 10, 4, shard="table")], 4)[0].owners == 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Table("", 1, 1), "a table needs a name"),
        (lambda: Table("a", 0, 1), "table 'a': rows = 0"),
        (lambda: Table("a", 1, 0), "table 'a': dim = 0"),
        (lambda: Table("a", 1, 1, bag="median"), "bag = 'median'"),  # type: ignore[arg-type]
        (lambda: place([], 1), "no table"),
        (lambda: place([Table("a", 1, 1)] * 2, 1), "two tables are called 'a'"),
        (lambda: place([Table("a", 1, 1)], 65), "65 hosts: want 1 to 64"),
    ],
)
def test_tables_that_make_no_sense_are_refused(make: object, said: str) -> None:
    with pytest.raises(TableError, match=said):
        make()  # type: ignore[operator]


def test_what_does_not_fit_is_refused_with_both_numbers() -> None:
    specs = [TableSpec(rows=2**31, dim=16_384)]
    with pytest.raises(TooLittleMemoryError, match=r"rows need [\d,]+ MiB, and [\d,]+ MiB are"):
        check_memory(specs, 1, 0, Optimizer(rule=Rule.ADAGRAD))


def test_first_rows_do_not_depend_on_who_owns_them() -> None:
    whole = normal_rows(9, 2, np.arange(10_000), 3)
    some = np.array([9_999, 4, 4_096, 4_095, 17])
    assert np.array_equal(normal_rows(9, 2, some, 3), whole[some])
    assert abs(whole.mean()) < 0.05
    assert abs(whole.std() - 1) < 0.05


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        (([5],), NoSuchRowError, "row 5: the table has rows 0 to 4"),
        (([-1],), NoSuchRowError, "row -1"),
        (([[1]],), InvalidBagsError, "want integers"),
        (([0, 1], [1]), InvalidBagsError, "the first is 1, want 0"),
        (([0, 1], [0, 2, 1]), InvalidBagsError, "they fall, or go beyond"),
        (([0, 1], [0, 3]), InvalidBagsError, "they fall, or go beyond"),
        (([0], [0], [1.0]), InvalidBagsError, "weights: float64"),
    ],
)
def test_bags_that_make_no_sense_are_refused(
    arguments: tuple[list[float], ...], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        Bags.of(*arguments, limit=5)


def test_strangers_and_noise_are_counted_and_change_nothing() -> None:
    door, other = Door("127.0.0.1"), Door("127.0.0.1")
    peer = door.peer
    config = GroupConfig(key=3, tables=[TableSpec(rows=4, dim=2)])
    service = Service(door, config, [peer])
    for noise in (b"", b"x" * 31, b"\x01" * 400):
        other.socket.sendto(noise, peer.place)
    bags = Bags.of([1, 1], limit=4)
    service.write(0, np.arange(8, dtype=np.float32).reshape(4, 2))
    assert np.array_equal(service.look_up(0, 0, bags).wait(), [[2, 3], [2, 3]])
    while service.native.traffic.strangers < 3:
        pass
    service.close()
    other.socket.close()
