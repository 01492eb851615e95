"""A BFRuntime server without a chip: it keeps entries, and refuses what its schema does not have.

In-process; clients find it by its address (:data:`SERVERS`). It can be stopped, restarted, cleared,
and made to fall silent.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import grpc

from tests.southbound.schema import fixed_tables

SERVERS: dict[str, FakeTofino] = {}
"""By address: what a client's ``ClientInterface`` connects to."""

PROGRAM_TABLES = ("MatchAction_Direct", "Counter", "Register")
"""Of a compiler's schema; it has others, as snapshots, which nobody here uses."""
_PORTS_A_PIPE = 64
_ports = itertools.count(50052)

Key = tuple[tuple[str, Any], ...]
Values = dict[str, Any]


class FakeRpcError(grpc.RpcError):
    """As a stub raises it; ``subs``: (index, code, message) of each update that was refused."""

    def __init__(
        self, code: grpc.StatusCode, details: str = "", subs: tuple[tuple[int, Any, str], ...] = ()
    ) -> None:
        super().__init__(details)
        self._code, self._details, self.subs = code, details, subs

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details


class RefusedError(Exception):
    """Of one update."""

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class FieldInfo:
    """A field of a key or of data."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.name = document["name"]
        self.kind = document["type"]["type"]
        self.choices = document["type"].get("choices")
        self.repeated = document.get("repeated", False)
        self.bits = document["type"].get("width") or int(self.kind.removeprefix("uint") or 0) \
            if self.kind.startswith("uint") or self.kind == "bytes" else 0  # fmt: skip
        self.mandatory = document.get("mandatory", False)
        self.read_only = document.get("read_only", False)
        self.match = document.get("match_type", "")


class TableInfo:
    """A table of the schema."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.name = document["name"]
        self.table_type = document["table_type"]
        self.size = document["size"]
        self.attributes = document["attributes"]
        self.const_default = document.get("has_const_default_action", False)
        self.keys = {field["name"]: FieldInfo(field) for field in document["key"]}
        self.data = {}
        for field in document["data"]:
            of_both = {**field["singleton"], **{k: field[k] for k in ("mandatory", "read_only")}}
            self.data[of_both["name"]] = FieldInfo(of_both)
        self.actions: dict[str, dict[str, FieldInfo]] = {}
        self.default_only = set()
        for action in document.get("action_specs", ()):
            self.actions[action["name"]] = {f["name"]: FieldInfo(f) for f in action["data"]}
            if action.get("action_scope") == "DefaultOnly":
                self.default_only.add(action["name"])

    def fields(self, action: str | None) -> dict[str, FieldInfo]:
        """Data fields of an action, and those common to all."""
        return {**(self.actions[action] if action else {}), **self.data}


class FakeTofino:
    """One device with one program, four pipes, and 64 ports a pipe named 1/0, 1/1 ..."""

    def __init__(self, schema: Mapping[str, Any], program: str = "ina_pool_64") -> None:
        self.program = program
        self.address = f"127.0.0.1:{next(_ports)}"
        documents = [t for t in schema["tables"] if t["table_type"] in PROGRAM_TABLES]
        documents += fixed_tables()
        self.tables = {document["name"]: TableInfo(document) for document in documents}
        self.entries: dict[str, dict[Key, Values]] = {name: {} for name in self.tables}
        self.defaults: dict[str, Values] = {}
        """By table: default actions that are not the program's own."""
        self.up = True
        self.silent = False
        """Calls wait until they are let go, or until their client closes its channel."""
        self.connections: set[Any] = set()
        self.owner: Any = None
        """The connection that has bound the program."""
        self.calls: list[str] = []
        """What was asked, as "insert pipe.PoolIngress..."; only what writes."""
        self.lock = threading.RLock()
        SERVERS[self.address] = self

    def close(self) -> None:
        self.stop()
        del SERVERS[self.address]

    def stop(self) -> None:
        """bf_switchd ends: every stream breaks, every call fails, nothing is remembered."""
        with self.lock:
            self.up = False
            for connection in list(self.connections):
                connection.break_off()
            for entries in self.entries.values():
                entries.clear()

    def start(self) -> None:
        """bf_switchd is there again, with empty tables."""
        self.up = True

    def cut(self) -> None:
        """Every connection breaks; tables are as they were."""
        with self.lock:
            for connection in list(self.connections):
                connection.break_off()

    def rows(self, name: str) -> list[dict[str, Any]]:
        """The entries of a table, keys and data in one."""
        found = self.entries[f"pipe.{name}" if not name.startswith("$") else name]
        return [{**dict(key), **data} for key, data in found.items()]

    def bind(self, connection: Any, program: str) -> None:
        with self.lock:
            if program != self.program:
                raise FakeRpcError(grpc.StatusCode.NOT_FOUND, f"Failed to find BfRtInfo {program}")
            if self.owner is not None:
                raise FakeRpcError(
                    grpc.StatusCode.ALREADY_EXISTS,
                    f"Client ID {connection.client_id} trying to bind but Client ID"
                    f" {self.owner.client_id} already owns this P4",
                )
            self.owner = connection

    def write(
        self, connection: Any, kind: str, name: str, updates: Iterable[tuple[Key | None, Any, Any]]
    ) -> None:
        """``updates``: key, action, values. Goes on after a refused one, and tells all at last."""
        with self.lock:
            self._check_bound(connection)
            self.calls.append(f"{kind} {name}")
            refused = []
            for index, (key, action, values) in enumerate(updates):
                try:
                    getattr(self, f"_{kind}")(self.tables[name], key, action, values)
                except RefusedError as error:
                    refused.append((index, error.code, error.message))
            if refused:
                raise FakeRpcError(grpc.StatusCode.UNKNOWN, "Write Error Status", tuple(refused))

    def read(self, connection: Any, name: str, keys: list[Key]) -> Iterator[tuple[Key, Values]]:
        with self.lock:
            self._check_bound(connection)
            table = self.tables[name]
            if not keys:
                if table.table_type in ("PortHdlInfo",):
                    raise _of_all(grpc.StatusCode.UNIMPLEMENTED, "Get all is not supported")
                there = [(key, self._find(table, key)) for key in self.entries[name]]
                return iter([(key, values) for key, values in there if values is not None])
            found = []
            for key in keys:
                values = self._find(table, key)
                if values is None:
                    raise _of_all(grpc.StatusCode.NOT_FOUND, "Object not found")
                found.append((key, values))
            return iter(found)

    def _find(self, table: TableInfo, key: Key) -> Values | None:
        if table.table_type == "Counter":
            zero = {"$COUNTER_SPEC_BYTES": 0, "$COUNTER_SPEC_PKTS": 0}
            in_range = dict(key)["$COUNTER_INDEX"] < table.size
            return self.entries[table.name].get(key, zero) if in_range else None
        if table.table_type == "PortHdlInfo":
            place = dict(key)
            number = (place["$CONN_ID"] - 1) * 4 + place["$CHNL_ID"]
            pipe, port = divmod(number, _PORTS_A_PIPE)
            in_range = place["$CHNL_ID"] < 4 and 0 <= number < 4 * _PORTS_A_PIPE
            return {"$DEV_PORT": pipe << 7 | port} if in_range else None
        return self.entries[table.name].get(key)

    def _insert(self, table: TableInfo, key: Key, action: str | None, values: Values) -> None:
        self._check(table, key, action, values)
        entries = self.entries[table.name]
        if table.table_type == "Counter":
            entries[key] = values
            return
        if key in entries:
            raise RefusedError(grpc.StatusCode.ALREADY_EXISTS, "Already exists")
        if len(entries) >= table.size:
            raise RefusedError(grpc.StatusCode.RESOURCE_EXHAUSTED, "Not enough space")
        if table.name == "$PORT":
            if not {"$SPEED", "$FEC"} <= values.keys():
                raise _invalid("a port needs its speed and FEC")
            number = dict(key)["$DEV_PORT"]
            connector, channel = divmod((number >> 7) * _PORTS_A_PIPE + (number & 127), 4)
            values = {"$PORT_UP": True, "$PORT_NAME": f"{connector + 1}/{channel}", **values}
        entries[key] = self._stored(table, action, values)

    def _modify(self, table: TableInfo, key: Key, action: str | None, values: Values) -> None:
        self._check(table, key, action, values)
        entries = self.entries[table.name]
        if table.table_type == "Counter":
            entries[key] = values
            return
        if key not in entries:
            raise RefusedError(grpc.StatusCode.NOT_FOUND, "Object not found")
        if table.name == "$PORT" and values.keys() & {"$SPEED", "$FEC"}:
            raise _invalid("speed and FEC of a port cannot be changed")
        entries[key] = self._stored(table, action, {**entries[key], **values})

    def _delete(self, table: TableInfo, key: Key | None, action: None, values: None) -> None:
        entries = self.entries[table.name]
        if key is None:
            entries.clear()
            return
        if key not in entries:
            raise RefusedError(grpc.StatusCode.NOT_FOUND, "Object not found")
        if table.name == "$pre.node":
            node = dict(key)["$MULTICAST_NODE_ID"]
            groups = self.entries["$pre.mgid"].values()
            if any(node in group["$MULTICAST_NODE_ID"] for group in groups):
                raise RefusedError(grpc.StatusCode.FAILED_PRECONDITION, "the node is in a group")
        del entries[key]

    def _default(
        self, table: TableInfo, key: None, action: str | None, values: Values | None
    ) -> None:
        if table.const_default:
            raise RefusedError(grpc.StatusCode.PERMISSION_DENIED, "the default action is constant")
        if values is None:
            self.defaults.pop(table.name, None)
            return
        for name, value in values.items():
            self._check_field(table.fields(action)[name], value)
        self.defaults[table.name] = {**values, "action_name": action}

    @staticmethod
    def _stored(table: TableInfo, action: str | None, values: Values) -> Values:
        counts = {name: 0 for name in table.data if name.startswith("$COUNTER_SPEC")}
        return {**counts, **values, "action_name": action}

    def _check(self, table: TableInfo, key: Key, action: str | None, values: Values) -> None:
        if "ConstTable" in table.attributes:
            raise RefusedError(grpc.StatusCode.PERMISSION_DENIED, "the table is constant")
        for name, value in key:
            if isinstance(value, int) and value >> table.keys[name].bits:
                raise _invalid(f"key {name}: {value} has more than {table.keys[name].bits} bits")
        if table.actions and (action is None or action in table.default_only):
            raise _invalid(f"not an action for an entry: {action}")
        fields = table.fields(action)
        for name, value in values.items():
            self._check_field(fields[name], value)
        for field in fields.values():
            if field.mandatory and field.name not in values:
                raise _invalid(f"field {field.name} is mandatory")
        if table.name == "$pre.mgid":
            unknown = [
                node
                for node in values["$MULTICAST_NODE_ID"]
                if (("$MULTICAST_NODE_ID", node),) not in self.entries["$pre.node"]
            ]
            if unknown:
                raise _invalid(f"no such nodes: {unknown}")
            if len({len(values[name]) for name in table.data}) != 1:
                raise _invalid("lists of different lengths")

    @staticmethod
    def _check_field(field: FieldInfo, value: Any) -> None:
        if field.read_only:
            raise _invalid(f"field {field.name} is read-only")
        for one in value if field.repeated else [value]:
            if field.bits and (not isinstance(one, int) or not 0 <= one < 1 << field.bits):
                raise _invalid(f"field {field.name}: {one!r} is not {field.bits} bits")
            if field.choices and one not in field.choices:
                raise _invalid(f"field {field.name}: {one!r} is not one of {field.choices}")

    def _check_bound(self, connection: Any) -> None:
        if connection is not self.owner:
            raise FakeRpcError(grpc.StatusCode.NOT_FOUND, "Bound config not found")


def _invalid(message: str) -> RefusedError:
    return RefusedError(grpc.StatusCode.INVALID_ARGUMENT, message)


def _of_all(code: grpc.StatusCode, message: str) -> FakeRpcError:
    return FakeRpcError(grpc.StatusCode.UNKNOWN, "Read Error Status", ((0, code, message),))
