"""Items go to P4Runtime's entities and come back, by names of the P4Info."""

from __future__ import annotations

import msgspec
import pytest

from ina.p4 import compiled, names
from ina.tables.entities import Entities, entities_of
from ina.tables.values import (
    AnyItem,
    CloneSession,
    Count,
    Counter,
    DefaultAction,
    Entry,
    EntryCounter,
    Group,
)

DMAC = Entry(names.DMAC, (("dst_mac", 9),), names.FORWARD, (("port", 1),))
ROUTE = Entry(
    names.IPV4_LPM,
    (("dst_addr", "10.1.0.0/16"),),
    names.ROUTE,
    (("port", 3), ("src_mac", 1), ("dst_mac", 2)),
)
ITEMS: list[AnyItem] = [
    DMAC,
    ROUTE,
    Entry(names.ROUTER_MACS, (("dst_mac", 5),), names.NO_ACTION),
    DefaultAction(names.DMAC, names.FLOOD, (("group", 7),)),
    Group(7, ((1, 1), (2, 256))),
    CloneSession(3, ((1, 0),)),
]


@pytest.fixture(scope="module")
def entities() -> Entities:
    return entities_of(compiled(64).p4info)


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: type(item).__name__)
def test_what_is_encoded_comes_back(entities: Entities, item: AnyItem) -> None:
    assert entities.decode(entities.encode(item)) == item
    assert msgspec.json.decode(msgspec.json.encode(item), type=AnyItem) == item


def test_whose_an_entity_is(entities: Entities) -> None:
    assert entities.table_of(entities.encode(DMAC)) == names.DMAC
    assert entities.table_of(entities.encode(ITEMS[-1])) == ""


def test_counters_are_asked_and_cleared_by_name(entities: Entities) -> None:
    wanted = entities.counter(Counter(names.DROPS, 2))
    assert wanted.counter_entry.index.index == 2
    assert not wanted.counter_entry.HasField("data")
    zero = entities.counter(Counter(names.DROPS, 2), is_zero=True)
    assert zero.counter_entry.HasField("data")
    assert entities.count(zero) == Count(0, 0)
    row = entities.counter(EntryCounter(DMAC.table, DMAC.match))
    assert entities.counted_match(row) == DMAC.match


@pytest.mark.parametrize(
    "wrong",
    [
        Entry("MyIngress.none", (), names.FORWARD),
        Entry(names.DMAC, (("dst_mac", 1 << 48),), names.FORWARD, (("port", 1),)),
        Entry(names.DMAC, (("dst_mac", 1),), names.FORWARD, (("port", 1), ("lane", 2))),
        Entry(names.DMAC, (("dst_ip", 1),), names.FORWARD, (("port", 1),)),
    ],
)
def test_what_the_program_has_no_name_or_no_bits_for(entities: Entities, wrong: Entry) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        entities.encode(wrong)
