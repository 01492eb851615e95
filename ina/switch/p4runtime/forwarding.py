"""The forwarding state of one committed pipeline: what Write changes and Read reports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from finsy.proto import p4r

from ina.switch.p4runtime.clones import CloneStore
from ina.switch.p4runtime.counters import read_counters, write_counter
from ina.switch.p4runtime.digests import DigestStore
from ina.switch.p4runtime.multicast import MulticastStore
from ina.switch.p4runtime.schema import Schema
from ina.switch.p4runtime.status import invalid, not_found, unimplemented
from ina.switch.p4runtime.tables import TableStore
from ina.switch.pipeline import Pipeline


class Forwarding:
    """Tables, counters and groups over one pipeline. The caller holds the device's lock."""

    def __init__(self, schema: Schema, pipeline: Pipeline) -> None:
        self.schema = schema
        self.pipeline = pipeline
        self._tables = {id_: TableStore(t, pipeline) for id_, t in schema.tables.items()}
        self._multicast = MulticastStore(pipeline)
        self._clones = CloneStore(pipeline)
        self.digests = DigestStore(schema, pipeline)

    def write(self, update: p4r.Update) -> None:
        """Apply one update, or raise what is wrong with it."""
        if update.type not in (p4r.Update.INSERT, p4r.Update.MODIFY, p4r.Update.DELETE):
            raise invalid("update without a type")
        entity = update.entity
        match entity.WhichOneof("entity"):
            case "table_entry":
                self._write_table(update.type, entity.table_entry)
            case "counter_entry":
                self._only_modify(update.type, "counter_entry")
                write_counter(self.schema, self.pipeline, entity.counter_entry)
            case "direct_counter_entry":
                self._only_modify(update.type, "direct_counter_entry")
                self._write_direct(entity.direct_counter_entry)
            case "packet_replication_engine_entry":
                self._write_replication(update.type, entity.packet_replication_engine_entry)
            case "digest_entry":
                self.digests.write(update.type, entity.digest_entry)
            case None:
                raise invalid("update without an entity")
            case kind:
                raise unimplemented(kind)

    def read(self, request: p4r.Entity) -> Iterator[p4r.Entity]:
        """The entities that a request selects, or raise what is wrong with it."""
        match request.WhichOneof("entity"):
            case "table_entry":
                for entry in self._read_tables(request.table_entry):
                    yield p4r.Entity(table_entry=entry)
            case "counter_entry":
                for counter in read_counters(self.schema, self.pipeline, request.counter_entry):
                    yield p4r.Entity(counter_entry=counter)
            case "direct_counter_entry":
                for direct in self._read_direct(request.direct_counter_entry):
                    yield p4r.Entity(direct_counter_entry=direct)
            case "packet_replication_engine_entry":
                yield from self._read_replication(request.packet_replication_engine_entry)
            case "digest_entry":
                for digest in self.digests.read(request.digest_entry):
                    yield p4r.Entity(digest_entry=digest)
            case None:
                raise invalid("read of an empty entity")
            case kind:
                self._read_unsupported(kind, getattr(request, kind))

    def table(self, table_id: int) -> TableStore:
        """By its id; NOT_FOUND: there is none."""
        table = self._tables.get(table_id)
        if table is None:
            raise not_found(f"no table with id {table_id}")
        return table

    def _write_table(self, kind: p4r.Update.Type.ValueType, entry: p4r.TableEntry) -> None:
        table = self.table(entry.table_id)
        match kind:
            case p4r.Update.INSERT:
                table.insert(entry)
            case p4r.Update.MODIFY:
                table.modify(entry)
            case _:
                table.delete(entry)

    @staticmethod
    def _only_modify(kind: p4r.Update.Type.ValueType, what: str) -> None:
        if kind != p4r.Update.MODIFY:
            raise invalid(f"{what} can only be modified")

    def _write_direct(self, entry: p4r.DirectCounterEntry) -> None:
        table = self.table(entry.table_entry.table_id)
        stored = table.find(entry.table_entry)
        table.read_counter(stored)  # refuses a table that has none
        if entry.HasField("data"):
            table.set_counter(stored, entry.data)

    def _write_replication(
        self, kind: p4r.Update.Type.ValueType, entry: p4r.PacketReplicationEngineEntry
    ) -> None:
        store: Any
        message: Any
        match entry.WhichOneof("type"):
            case "multicast_group_entry":
                store, message = self._multicast, entry.multicast_group_entry
            case "clone_session_entry":
                store, message = self._clones, entry.clone_session_entry
            case _:
                raise unimplemented(entry.WhichOneof("type") or "empty replication entry")
        match kind:
            case p4r.Update.INSERT:
                store.insert(message)
            case p4r.Update.MODIFY:
                store.modify(message)
            case _:
                store.delete(message)

    def _read_tables(self, request: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        if request.table_id:
            yield from self.table(request.table_id).read(request)
            return
        if request.match:
            raise invalid("a match needs a table_id")
        for table in self._tables.values():
            yield from table.read(request)

    def _read_direct(self, request: p4r.DirectCounterEntry) -> Iterator[p4r.DirectCounterEntry]:
        wanted = request.table_entry
        if wanted.table_id:
            tables = [self.table(wanted.table_id)]
        else:
            tables = [t for t in self._tables.values() if t.schema.direct_counter is not None]
        for table in tables:
            if wanted.is_default_action:
                entries = [table.default]
            elif wanted.match:
                entries = [table.find(wanted)]
            else:
                entries = list(table.select(wanted))
            if table.schema.direct_counter is None:
                raise invalid(f"{table.schema.name}: the table has no direct counter")
            for stored in entries:
                message = table.message(stored)
                key = p4r.TableEntry(
                    table_id=message.table_id,
                    match=message.match,
                    priority=message.priority,
                    is_default_action=message.is_default_action,
                )
                yield p4r.DirectCounterEntry(table_entry=key, data=table.read_counter(stored))

    def _read_replication(self, request: p4r.PacketReplicationEngineEntry) -> Iterator[p4r.Entity]:
        match request.WhichOneof("type"):
            case "multicast_group_entry":
                for group in self._multicast.read(request.multicast_group_entry):
                    entry = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
                    yield p4r.Entity(packet_replication_engine_entry=entry)
            case "clone_session_entry":
                for session in self._clones.read(request.clone_session_entry):
                    entry = p4r.PacketReplicationEngineEntry(clone_session_entry=session)
                    yield p4r.Entity(packet_replication_engine_entry=entry)
            case _:
                raise invalid("read of an empty replication entry")

    def _read_unsupported(self, kind: str, request: object) -> None:
        """A program without such objects has none to report; of one with them, say so."""
        ids = [f for f in type(request).DESCRIPTOR.fields if f.name.endswith("_id")]  # type: ignore[attr-defined]
        if kind in self.schema.unsupported or any(getattr(request, f.name) for f in ids):
            raise unimplemented(kind)
