"""What the SDE's ``bfrt_grpc.client`` offers, with its names, towards a :class:`FakeTofino`.

It refuses what the SDE's client refuses by itself, with the same kinds of exceptions: names that
are not in the schema, matches of another kind, numbers of too many bytes.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import grpc

from tests.worlds.fakes.tofino import SERVERS, FakeRpcError, FakeTofino, FieldInfo, TableInfo

_POLL_S = 0.02


class BfruntimeRpcException(Exception):  # noqa: N818 (the SDE's name)
    def __init__(self, grpc_error: FakeRpcError) -> None:
        super().__init__()
        self.grpc_error = grpc_error
        self.errors = [
            (index, SimpleNamespace(canonical_code=code.value[0], message=message))
            for index, code, message in grpc_error.subs
        ]

    def grpc_error_get(self) -> FakeRpcError:
        return self.grpc_error

    def sub_errors_get(self) -> list[tuple[int, Any]]:
        return self.errors


class BfruntimeSubscribeRpcException(BfruntimeRpcException):
    pass


class BfruntimeForwardingRpcException(BfruntimeRpcException):
    pass


class BfruntimeReadWriteRpcException(BfruntimeRpcException):
    pass


class Target:
    def __init__(
        self, device_id: int = 0, pipe_id: int = 0xFFFF, direction: int = 0xFF, prsr_id: int = 0xFF
    ) -> None:
        self.device_id_, self.pipe_id_ = device_id, pipe_id


class Notifications:
    def __init__(
        self,
        enable_learn: bool = True,
        enable_idletimeout: bool = True,
        enable_port_status_change: bool = True,
    ) -> None:
        pass


class KeyTuple:
    def __init__(
        self,
        name: str,
        value: Any = None,
        mask: Any = None,
        prefix_len: int | None = None,
        low: Any = None,
        high: Any = None,
        is_valid: bool | None = None,
    ) -> None:
        if not isinstance(value, int | bytearray | str):
            raise TypeError("Expected type int/long, ByteArray or a string")
        self.name, self.value, self.mask, self.prefix_len = name, value, mask, prefix_len
        self.match_type = "LPM" if prefix_len is not None else "Ternary" if mask else "Exact"


class DataTuple:
    def __init__(
        self,
        name: str,
        val: Any = None,
        float_val: Any = None,
        str_val: Any = None,
        int_arr_val: Any = None,
        bool_arr_val: Any = None,
        bool_val: Any = None,
    ) -> None:
        for given, kind in (
            (val, int | bytearray | str),
            (str_val, str),
            (bool_val, bool),
            (int_arr_val, list),
            (bool_arr_val, list),
        ):
            if given is not None and not isinstance(given, kind):
                raise TypeError(f"{name}: {given!r} is not {kind}")
        self.name = name
        self.values = {
            "number": val, "string": str_val, "bool": bool_val,
            "numbers": int_arr_val, "bools": bool_arr_val,
        }  # fmt: skip

    def of(self, field: FieldInfo) -> Any:
        """The value, from where the field's type has it."""
        kind = field.kind if field.kind in ("bool", "string") else "number"
        value = self.values[f"{kind}s" if field.repeated else kind]
        if value is None:
            raise ValueError(f"field {field.name}: no value of its type")
        return value


class _Key:
    def __init__(self, table: Table, fields: list[KeyTuple]) -> None:
        known = table.info.table.keys
        for field in fields:
            if field.name not in known:
                raise KeyError(
                    f"The Key field name {field.name} doesn't exist in {table.info.table.name}"
                )
            if field.match_type != known[field.name].match:
                raise ValueError(f"field:{field.name} Passed in type:{field.match_type}")
        named = {field.name: field for field in fields}
        for info in known.values():
            assert not info.mandatory or info.name in named, f"{info.name} is mandatory"
        self.table = table
        self.key = tuple((name, self._part(named.get(name), known[name])) for name in known)

    @staticmethod
    def _part(field: KeyTuple | None, info: FieldInfo) -> Any:
        if field is None:
            return 0 if info.match == "Exact" else (0, 0)
        return field.value if field.match_type == "Exact" else (field.value, field.prefix_len)

    def to_dict(self) -> dict[str, Any]:
        return {
            name: {"value": part}
            if isinstance(part, int)
            else dict(zip(("value", "prefix_len"), part, strict=True))
            for name, part in self.key
        }


class _Data:
    def __init__(self, table: Table, fields: list[DataTuple], action_name: str | None) -> None:
        known = table.info.table.fields(action_name)
        self.values = {}
        for field in fields:
            if field.name not in known:
                raise KeyError(f"Failed to find field {field.name} for action {action_name}")
            info, value = known[field.name], field.of(known[field.name])
            size = (info.bits + 7) // 8
            if size and not info.repeated and value >> 8 * size:
                raise ValueError(f"expected {size} len received more for field {field.name}")
            self.values[field.name] = value
        self.action_name = action_name
        self.is_default_entry = False

    def to_dict(self) -> dict[str, Any]:
        return {"action_name": self.action_name, "is_default_entry": False, **self.values}


class TableDescription:
    """What the SDE calls ``table.info``."""

    def __init__(self, table: TableInfo) -> None:
        self.table = table
        self.table_type = table.table_type

    def name_get(self) -> str:
        return str(self.table.name)

    def has_const_default_action_get(self) -> bool:
        return bool(self.table.const_default)

    def attributes_supported_get(self) -> list[str]:
        return list(self.table.attributes)

    def key_field_name_list_get(self) -> list[str]:
        return list(self.table.keys)

    def key_field_size_get(self, name: str) -> tuple[int, int]:
        return _size(self.table.keys[name])

    def key_field_match_type_get(self, name: str) -> str:
        return str(self.table.keys[name].match)

    def action_name_list_get(self) -> list[str]:
        return list(self.table.actions)

    def data_field_name_list_get(self, action_name: str | None = None) -> list[str]:
        return list(self.table.fields(action_name))

    def data_field_size_get(self, name: str, action_name: str | None = None) -> tuple[int, int]:
        return _size(self.table.fields(action_name)[name])


def _size(field: FieldInfo) -> tuple[int, int]:
    return (field.bits + 7) // 8, field.bits


class Table:
    def __init__(self, table: TableInfo, interface: ClientInterface) -> None:
        self.info = TableDescription(table)
        self._interface = interface

    def make_key(self, fields: list[KeyTuple]) -> _Key:
        return _Key(self, fields)

    def make_data(self, fields: list[DataTuple], action_name: str | None = None) -> _Data:
        return _Data(self, fields, action_name)

    def entry_add(self, target: Target, key_list: Any = None, data_list: Any = None) -> None:
        self._write("insert", key_list, data_list)

    def entry_mod(self, target: Target, key_list: Any = None, data_list: Any = None) -> None:
        self._write("modify", key_list, data_list)

    def entry_del(self, target: Target, key_list: Any = None) -> None:
        self._write("delete", key_list or [None], None)

    def default_entry_set(self, target: Target, data: _Data) -> None:
        self._write("default", [None], [data])

    def default_entry_reset(self, target: Target) -> None:
        self._write("default", [None], None)

    def entry_get(
        self, target: Target, key_list: Any = None, flags: Any = None
    ) -> Iterator[tuple[_Data, _Key]]:
        """A generator, like the SDE's: what goes wrong shows when it is used."""
        name = self.info.table.name
        keys = [key.key for key in key_list or []]
        entries = self._interface.ask(
            lambda server: server.read(self._interface, name, keys), BfruntimeReadWriteRpcException
        )
        for key, values in entries:
            found = _Key.__new__(_Key)
            found.table, found.key = self, key
            data = _Data(self, [], values.get("action_name"))
            data.values = {field: v for field, v in values.items() if field != "action_name"}
            yield data, found

    def _write(self, kind: str, keys: list[_Key | None], data: list[_Data] | None) -> None:
        if data is not None:
            assert len(keys) == len(data)
        updates = [
            (
                None if key is None else key.key,
                None if data is None else data[index].action_name,
                None if data is None else dict(data[index].values),
            )
            for index, key in enumerate(keys)
        ]
        name = self.info.table.name
        self._interface.ask(
            lambda server: server.write(self._interface, kind, name, updates),
            BfruntimeReadWriteRpcException,
        )


class _BfRtInfo:
    def __init__(self, interface: ClientInterface, server: FakeTofino) -> None:
        self._name = server.program
        self._tables = {name: Table(info, interface) for name, info in server.tables.items()}
        infos = {name: table.info for name, table in self._tables.items()}
        self.parsed_info = SimpleNamespace(table_info_dict_get=lambda: infos)

    def p4_name_get(self) -> str:
        return self._name

    def table_get(self, name: str) -> Table:
        return self._tables[name]


class ClientInterface:
    def __init__(
        self,
        grpc_addr: str,
        client_id: int,
        device_id: int,
        notifications: Notifications | None = None,
        timeout: float = 1,
        num_tries: int = 5,
        perform_subscribe: bool = True,
    ) -> None:
        self.client_id, self.device_id = client_id, device_id
        self._server = SERVERS.get(grpc_addr)
        self._ended = threading.Event()
        self.channel = SimpleNamespace(close=self.break_off)
        self.exception_q: queue.Queue[Exception] = queue.Queue()
        if self._server is None or not self._server.up:
            raise RuntimeError("Failed to subscribe to server at %s", grpc_addr)
        self.stream_recv_thread = threading.Thread(target=self._ended.wait, daemon=True)
        self.stream_recv_thread.start()
        with self._server.lock:
            self._server.connections.add(self)

    def bind_pipeline_config(self, p4_name: str) -> None:
        if not p4_name:
            raise ValueError("Cannot bind with empty p4_name")
        self.ask(lambda server: server.bind(self, p4_name), BfruntimeForwardingRpcException)

    def bfrt_info_get(self, p4_name: str | None = None) -> _BfRtInfo:
        server = self.ask(lambda server: server, BfruntimeForwardingRpcException)
        if p4_name and p4_name != server.program:
            raise RuntimeError("BF_RT_INFO not received")
        return _BfRtInfo(self, server)

    def tear_down_stream(self) -> None:
        self.break_off()
        self.stream_recv_thread.join()

    def break_off(self) -> None:
        """The stream has ended; the server notices."""
        self._ended.set()
        assert self._server is not None
        with self._server.lock:
            self._server.connections.discard(self)
            if self._server.owner is self:
                self._server.owner = None

    def ask(self, call: Any, exception: Any) -> Any:
        """A call as over a channel, which opens again by itself, without the stream."""
        assert self._server is not None
        waited = False
        while self._server.silent and not self._ended.wait(_POLL_S):
            waited = True
        try:
            if self._server.silent or (waited and self._ended.is_set()):
                raise FakeRpcError(grpc.StatusCode.CANCELLED, "Channel closed!")
            if not self._server.up:
                raise FakeRpcError(grpc.StatusCode.UNAVAILABLE, "failed to connect")
            return call(self._server)
        except FakeRpcError as error:
            raise exception(error) from None
