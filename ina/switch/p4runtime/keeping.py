"""What a keeper is told of a pipeline's tables and groups, and how they are made of that again.

Counters are not told: they go on where they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from ina.switch.keeper import Change
from ina.switch.p4runtime.forwarding import Forwarding
from ina.switch.p4runtime.tables import TableStore

_TABLES = (
    p4r.Entity(table_entry=p4r.TableEntry()),
    p4r.Entity(table_entry=p4r.TableEntry(is_default_action=True)),
)
_GROUPS = (
    p4r.PacketReplicationEngineEntry(multicast_group_entry=p4r.MulticastGroupEntry()),
    p4r.PacketReplicationEngineEntry(clone_session_entry=p4r.CloneSessionEntry()),
)


def entities_of(forwarding: Forwarding) -> dict[bytes, bytes]:
    """All that clients can change, by key."""
    return {_key(it): it.SerializeToString() for it in _changeable(forwarding)}


def change_of(forwarding: Forwarding, update: p4r.Update) -> Change | None:
    """What an update that was done has changed; None: counters alone."""
    entity = p4r.Entity()
    match update.entity.WhichOneof("entity"):
        case "table_entry":
            asked = update.entity.table_entry
            table = forwarding.table(asked.table_id)
            if update.type == p4r.Update.DELETE:
                entity.table_entry.CopyFrom(table.named(asked))
                return _key(entity), None
            entity.table_entry.CopyFrom(table.message(table.find(asked)))
            if entity.table_entry.is_const:
                return None
        case "packet_replication_engine_entry":
            entity.CopyFrom(update.entity)
            if update.type == p4r.Update.DELETE:
                return _key(entity), None
        case _:
            return None
    return _key(entity), entity.SerializeToString()


def restore(forwarding: Forwarding, entities: Iterable[bytes]) -> None:
    """Makes tables and groups, which are as at power-on, have what :func:`entities_of` told.
    Default actions that were not told stay the program's.

    Raises InaError: the program has no place for it.
    """
    wanted = {}
    for told in entities:
        entity = p4r.Entity.FromString(told)
        wanted[_key(entity)] = entity
    there = {_key(entity): entity for entity in _changeable(forwarding)}
    for key, entity in there.items():
        if key not in wanted and not entity.table_entry.is_default_action:
            forwarding.write(p4r.Update(type=p4r.Update.DELETE, entity=entity))
    for key, entity in wanted.items():
        kind = p4r.Update.MODIFY if key in there else p4r.Update.INSERT
        forwarding.write(p4r.Update(type=kind, entity=entity))


def _changeable(forwarding: Forwarding) -> Iterator[p4r.Entity]:
    for request in _TABLES:
        for entity in forwarding.read(request):
            table = forwarding.table(entity.table_entry.table_id)
            if not entity.table_entry.is_const and not _is_fixed(table, entity.table_entry):
                yield entity
    for group in _GROUPS:
        yield from forwarding.read(p4r.Entity(packet_replication_engine_entry=group))


def _is_fixed(table: TableStore, entry: p4r.TableEntry) -> bool:
    return entry.is_default_action and table.schema.const_default


def _key(entity: p4r.Entity) -> bytes:
    """As they are read: the same entry has the same one."""
    key = p4r.Entity()
    if entity.HasField("table_entry"):
        entry = entity.table_entry
        key.table_entry.table_id = entry.table_id
        key.table_entry.match.extend(entry.match)
        key.table_entry.priority = entry.priority
        key.table_entry.is_default_action = entry.is_default_action
    else:
        of, named = entity.packet_replication_engine_entry, key.packet_replication_engine_entry
        if of.HasField("multicast_group_entry"):
            group = of.multicast_group_entry.multicast_group_id
            named.multicast_group_entry.multicast_group_id = group
        else:
            named.clone_session_entry.session_id = of.clone_session_entry.session_id
    return key.SerializeToString(deterministic=True)
