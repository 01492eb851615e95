"""What a keeper is told, update by update, makes the same tables and groups again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from finsy.proto import p4r
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.errors import InaError
from ina.switch.p4runtime.forwarding import Forwarding
from ina.switch.p4runtime.keeping import change_of, entities_of, restore
from ina.switch.p4runtime.schema import build_schema
from ina.switch.targets import default_target
from ina.tables.entities import Entities
from ina.tables.values import AnyItem, CloneSession, DefaultAction, Entry, Group
from tests.selection import examples

PROGRAMS = Path(__file__).parent / "programs"
ENTITIES = Entities(PROGRAMS / "features.p4info.txtpb", PROGRAMS / "features.json")
BRIDGE, FORWARD = "FeaturesIngress.bridge", "FeaturesIngress.forward"
PORTS = st.integers(1, 3)
ITEMS: st.SearchStrategy[AnyItem] = st.one_of(
    st.builds(
        lambda mac, port: Entry(
            BRIDGE, (("hdr.ethernet.destination", mac),), FORWARD, (("port", port),)
        ),
        st.integers(1, 3),
        PORTS,
    ),
    st.builds(lambda port: DefaultAction(BRIDGE, FORWARD, (("port", port),)), PORTS),
    st.builds(lambda group, port: Group(group, ((port, 1),)), st.integers(1, 2), PORTS),
    st.builds(lambda port: CloneSession(1, ((port, 1),)), PORTS),
)
UPDATES = st.tuples(
    st.sampled_from([p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE]), ITEMS
)


@contextmanager
def forwarding(cache: Path) -> Iterator[Forwarding]:
    """As at power-on."""
    image = default_target(cache).read_and_build(PROGRAMS / "features.json")
    with image.power_on() as pipeline:
        yield Forwarding(build_schema(ENTITIES.config.p4info, image.program), pipeline)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@settings(max_examples=examples(200))
@given(updates=st.lists(UPDATES, max_size=12))
def test_what_is_told_makes_the_same_again(
    updates: list[tuple[p4r.Update.Type.ValueType, AnyItem]], cache: Path
) -> None:
    with forwarding(cache) as before, forwarding(cache) as after:
        told = entities_of(before)
        for kind, item in updates:
            update = p4r.Update(type=kind, entity=ENTITIES.encode(item))
            with contextlib.suppress(InaError):  # it is there, or is not
                before.write(update)
                change = change_of(before, update)
                assert change is not None
                key, entity = change
                told.pop(key, None)
                told |= {} if entity is None else {key: entity}
        assert told == entities_of(before)
        restore(after, told.values())
        assert entities_of(after) == told


def test_entries_of_the_program_that_were_deleted_stay_so(cache: Path) -> None:
    with forwarding(cache) as before, forwarding(cache) as after:
        own = entities_of(before)
        restore(after, [])
        kept = [p4r.Entity.FromString(it).table_entry for it in entities_of(after).values()]
        assert all(it.is_default_action for it in kept)
        restore(after, own.values())
        assert entities_of(after) == own


def test_counters_are_not_told(cache: Path) -> None:
    with forwarding(cache) as switch:
        cell = p4r.CounterEntry(counter_id=next(iter(switch.schema.counters)))
        entity = p4r.Entity(counter_entry=cell)
        assert change_of(switch, p4r.Update(type=p4r.Update.MODIFY, entity=entity)) is None
