"""What ports dropped, said by P4Runtime's externs and understood again."""

from __future__ import annotations

from finsy.proto import p4r
from google.protobuf import any_pb2, struct_pb2
from hypothesis import given
from hypothesis import strategies as st

from ina.tables import port_drops
from ina.tables.values import PortDrop

DROPS = st.builds(
    PortDrop, st.integers(0, 511), st.text(st.characters(codec="ascii")), st.integers(0, 1 << 53)
)


@given(st.lists(DROPS))
def test_what_is_said_is_understood(drops: list[PortDrop]) -> None:
    assert port_drops.decode(port_drops.encode(drops)) == drops


def test_what_others_say_is_left_out() -> None:
    entry = any_pb2.Any()
    entry.Pack(struct_pb2.Struct())
    extern = p4r.ExternEntry(extern_type_id=port_drops.EXTERN_TYPE_ID, entry=entry)
    other = p4r.ExternEntry(extern_type_id=port_drops.EXTERN_TYPE_ID)
    entities = [p4r.Entity(extern_entry=it) for it in (extern, other)]
    assert port_drops.decode([*entities, p4r.Entity(table_entry=p4r.TableEntry())]) == []
