"""Table entries: written, kept as they were written, read back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from finsy.proto import p4r

from ina.switch.p4runtime.bits import decode, encode
from ina.switch.p4runtime.matches import (
    Key,
    check_priority,
    format_key,
    key_of_const,
    parse_key,
    refuse_string,
)
from ina.switch.p4runtime.schema import ActionSchema, TableSchema
from ina.switch.p4runtime.status import denied, exists, invalid, not_found, unimplemented
from ina.switch.pipeline import Pipeline


@dataclass
class StoredEntry:
    """An entry of the switch; ``handle`` None: the default entry."""

    handle: int | None
    key: Key
    priority: int
    action: ActionSchema | None
    params: tuple[int, ...]
    metadata: bytes = b""
    controller_metadata: int = 0
    is_const: bool = False


class TableStore:
    """The entries of one table. The caller holds the device's lock."""

    def __init__(self, schema: TableSchema, pipeline: Pipeline) -> None:
        self.schema = schema
        self._pipeline = pipeline
        self._entries: dict[tuple[Key, int], StoredEntry] = {}
        self.default = self._program_default()
        for entry in schema.program.entries:
            key = key_of_const(schema, entry.key)
            priority = entry.priority if schema.needs_priority else 0
            if (key, priority) in self._entries:
                continue  # never matches: the first of two alike wins
            handle = pipeline.const_handle(schema.name, len(self._entries))
            action, params = self._call(entry.call.action, entry.call.args)
            self._entries[key, priority] = StoredEntry(
                handle, key, priority, action, params, is_const=schema.is_const
            )

    def insert(self, entry: p4r.TableEntry) -> None:
        """Add an entry; refuses what the spec refuses."""
        self._refuse_unsupported(entry)
        if entry.is_default_action:
            raise invalid(f"{self.schema.name}: the default entry can only be modified")
        self._refuse_const()
        if not self.schema.fields:
            raise invalid(f"{self.schema.name}: a table without key takes no entries")
        if not entry.HasField("action"):
            raise invalid(f"{self.schema.name}: an entry needs an action")
        key = parse_key(self.schema, entry.match)
        check_priority(self.schema, entry.priority)
        action, params = self._parse_action(entry.action, as_default=False)
        if (key, entry.priority) in self._entries:
            raise exists(f"{self.schema.name}: there is an entry with this key and priority")
        self._check_counter(entry)
        handle = self._pipeline.insert(self.schema.name, key, action.name, params, entry.priority)
        stored = StoredEntry(
            handle, key, entry.priority, action, params, entry.metadata, entry.controller_metadata
        )
        self._entries[key, entry.priority] = stored
        self._write_counter(stored, entry)

    def modify(self, entry: p4r.TableEntry) -> None:
        """Change an entry's action, metadata and counter; or the default entry."""
        self._refuse_unsupported(entry)
        self._check_counter(entry)
        if entry.is_default_action:
            self._modify_default(entry)
            return
        stored = self.find(entry)
        if entry.HasField("action"):
            if stored.is_const:
                raise denied(f"{self.schema.name}: the action of a const entry cannot change")
            action, params = self._parse_action(entry.action, as_default=False)
            assert stored.handle is not None
            self._pipeline.modify(self.schema.name, stored.handle, action.name, params)
            stored.action, stored.params = action, params
        if not stored.is_const:
            stored.metadata = entry.metadata
            stored.controller_metadata = entry.controller_metadata
        self._write_counter(stored, entry)

    def delete(self, entry: p4r.TableEntry) -> None:
        """Remove an entry; only key and priority are looked at."""
        if entry.is_default_action:
            raise invalid(f"{self.schema.name}: the default entry can only be modified")
        self._refuse_const()
        stored = self.find(entry)
        assert stored.handle is not None
        self._pipeline.delete(self.schema.name, stored.handle)
        del self._entries[stored.key, stored.priority]

    def find(self, entry: p4r.TableEntry) -> StoredEntry:
        """The entry with this key and priority, or the default entry; NOT_FOUND otherwise."""
        if entry.is_default_action:
            self._check_default_key(entry)
            return self.default
        key = parse_key(self.schema, entry.match)
        check_priority(self.schema, entry.priority)
        stored = self._entries.get((key, entry.priority))
        if stored is None:
            raise not_found(f"{self.schema.name}: no entry with this key and priority")
        return stored

    def named(self, entry: p4r.TableEntry) -> p4r.TableEntry:
        """What names an entry, whether it is there or not, as :meth:`message` says it."""
        key = parse_key(self.schema, entry.match)
        match = format_key(self.schema, key)
        return p4r.TableEntry(table_id=self.schema.id, match=match, priority=entry.priority)

    def read(self, request: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        """The entries that match the request; unset fields match all."""
        with_counter = request.HasField("counter_data")
        if request.is_default_action:
            if self.default.action is not None:
                yield self.message(self.default, with_counter)
            return
        for stored in self.select(request):
            yield self.message(stored, with_counter)

    def select(self, request: p4r.TableEntry) -> Iterator[StoredEntry]:
        """Stored entries, filtered by every field of the request that is set."""
        key = parse_key(self.schema, request.match) if request.match else None
        action_id = request.action.action.action_id
        for stored in self._entries.values():
            if (
                (key is None or stored.key == key)
                and request.priority in (0, stored.priority)
                and (not action_id or (stored.action and stored.action.id == action_id))
                and request.controller_metadata in (0, stored.controller_metadata)
                and request.metadata in (b"", stored.metadata)
            ):
                yield stored

    def message(self, stored: StoredEntry, with_counter: bool = False) -> p4r.TableEntry:
        """The entry as P4Runtime says it."""
        entry = p4r.TableEntry(
            table_id=self.schema.id,
            match=format_key(self.schema, stored.key) if stored.handle is not None else [],
            priority=stored.priority,
            metadata=stored.metadata,
            controller_metadata=stored.controller_metadata,
            is_default_action=stored.handle is None,
            is_const=stored.is_const,
        )
        if stored.action is not None:
            action = entry.action.action
            action.action_id = stored.action.id
            for param, value in zip(stored.action.params, stored.params, strict=True):
                action.params.add(param_id=param.id, value=encode(value))
        if with_counter and self.schema.direct_counter is not None:
            entry.counter_data.CopyFrom(self.read_counter(stored))
        return entry

    def read_counter(self, stored: StoredEntry) -> p4r.CounterData:
        """The entry's direct counter."""
        counter = self.schema.direct_counter
        if counter is None:
            raise invalid(f"{self.schema.name}: the table has no direct counter")
        packets, size = self._pipeline.direct_counter(self.schema.name, stored.handle)
        return p4r.CounterData(
            packet_count=packets if counter.packets else 0, byte_count=size if counter.bytes else 0
        )

    def set_counter(self, stored: StoredEntry, data: p4r.CounterData) -> None:
        """Write the entry's direct counter."""
        if self.schema.direct_counter is None:
            raise invalid(f"{self.schema.name}: the table has no direct counter")
        if data.packet_count < 0 or data.byte_count < 0:
            raise invalid(f"{self.schema.name}: a counter cannot be negative")
        self._pipeline.set_direct_counter(
            self.schema.name, stored.handle, data.packet_count, data.byte_count
        )

    def _refuse_unsupported(self, entry: p4r.TableEntry) -> None:
        name = self.schema.name
        if entry.idle_timeout_ns:
            raise unimplemented(f"{name}: idle timeout")
        if entry.HasField("meter_config") or entry.HasField("meter_counter_data"):
            raise unimplemented(f"{name}: direct meter")
        if entry.is_const:
            raise invalid(f"{name}: is_const cannot be set by a client")
        kind = entry.action.WhichOneof("type")
        if kind not in (None, "action"):
            raise unimplemented(f"{name}: {kind}")

    def _refuse_const(self) -> None:
        if self.schema.is_const:
            raise denied(f"{self.schema.name}: const entries, only the program sets them")

    def _parse_action(
        self, message: p4r.TableAction, as_default: bool
    ) -> tuple[ActionSchema, tuple[int, ...]]:
        sent = message.action
        ref = self.schema.actions.get(sent.action_id)
        if ref is None:
            raise invalid(f"{self.schema.name}: no action with id {sent.action_id}")
        action = ref.action
        if not (ref.as_default if as_default else ref.in_entries):
            place = "the default" if as_default else "an entry's"
            raise denied(f"{self.schema.name}: {action.name} may not be {place} action")
        values = {param.param_id: param.value for param in sent.params}
        if len(values) != len(sent.params) or values.keys() != {p.id for p in action.params}:
            wanted = ", ".join(f"{p.name} ({p.id})" for p in action.params) or "none"
            raise invalid(f"{self.schema.name}, {action.name}: expected parameters: {wanted}")
        for p in action.params:
            refuse_string(p, f"{self.schema.name}, {action.name}, {p.name}")
        params = tuple(
            decode(values[p.id], p.width_bits, f"{self.schema.name}, {action.name}, {p.name}")
            for p in action.params
        )
        return action, params

    def _check_default_key(self, entry: p4r.TableEntry) -> None:
        if entry.match or entry.priority:
            raise invalid(f"{self.schema.name}: the default entry has no match and no priority")

    def _modify_default(self, entry: p4r.TableEntry) -> None:
        self._check_default_key(entry)
        if self.schema.const_default:
            raise denied(f"{self.schema.name}: the default action is const")
        if entry.HasField("action"):
            action, params = self._parse_action(entry.action, as_default=True)
            self._pipeline.set_default(self.schema.name, action.name, params)
            self.default = StoredEntry(None, (), 0, action, params)
        else:
            self._pipeline.set_default(self.schema.name, None)
            self.default = self._program_default()
        self.default.metadata = entry.metadata
        self.default.controller_metadata = entry.controller_metadata
        self._write_counter(self.default, entry)

    def _check_counter(self, entry: p4r.TableEntry) -> None:
        if entry.HasField("counter_data") and self.schema.direct_counter is None:
            raise invalid(f"{self.schema.name}: the table has no direct counter")

    def _write_counter(self, stored: StoredEntry, entry: p4r.TableEntry) -> None:
        if entry.HasField("counter_data"):
            self.set_counter(stored, entry.counter_data)

    def _program_default(self) -> StoredEntry:
        call = self.schema.program.default
        action, params = self._call(call.action, call.args)
        return StoredEntry(None, (), 0, action, params, is_const=False)

    def _call(
        self, index: int, args: tuple[int, ...]
    ) -> tuple[ActionSchema | None, tuple[int, ...]]:
        """None: an action that the P4Info does not tell of (the implicit NoAction)."""
        name = self._pipeline.program.actions[index].name
        action = self.schema.action_named(name)
        return action, args if action is not None else ()
