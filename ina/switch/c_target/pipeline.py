"""A shared object that was loaded, with one state: the C ABI's functions as a Pipeline."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ina.switch import native_abi as abi
from ina.switch.errors import (
    EntryExistsError,
    EntryNotFoundError,
    InvalidEntryError,
    TableFullError,
)
from ina.switch.ir import Program
from ina.switch.ir.data import Counter, Register
from ina.switch.ir.program import Action, Table
from ina.switch.ir.turns import Digest
from ina.switch.match import TableKey
from ina.switch.pipeline import Packets, Pipeline, Replicas

_BATCH = 256
_MOST_DIGEST_WORDS = 1024


class CPipeline(Pipeline):
    """Compiled. Several may run of one library."""

    def __init__(self, program: Program, library: ctypes.CDLL, generated: Path) -> None:
        super().__init__(program, generated)
        get = library.ina_pipeline_get
        get.restype = ctypes.POINTER(abi.PipelineStruct)
        self._calls = get()
        self._state: int | None = self._calls.contents.create()
        if not self._state:
            raise MemoryError("no memory for the pipeline's state")
        self._output: abi.OutputBuffer | None = None  # a MiB, which not all have a use for

    # -- packets --

    def _process(
        self, packets: Packets, now_ns: int, depths: Mapping[int, int]
    ) -> list[tuple[int, bytes]]:
        state, process = self._alive(), self._calls.contents.process
        left: list[tuple[int, bytes]] = []
        output = self._output = self._output or abi.OutputBuffer()
        output.set_depths(depths)
        for start in range(0, len(packets), _BATCH):
            batch = packets[start : start + _BATCH]
            array = (abi.PacketIn * len(batch))()
            for slot, (port, data) in zip(array, batch, strict=True):
                slot.data = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
                slot.length, slot.port, slot.now_ns = len(data), port, now_ns
            done = 0
            while done < len(batch):
                output.clear()
                at = ctypes.byref(array, done * ctypes.sizeof(abi.PacketIn))
                count = process(state, at, len(batch) - done, ctypes.byref(output.struct))
                left += output.packets()
                done += count
                if count == 0:
                    output.grow()
        return left

    @property
    def native(self) -> tuple[int, int]:
        """See :attr:`Pipeline.native`."""
        address = ctypes.cast(self._calls, ctypes.c_void_p).value
        assert address is not None
        return address, self._alive()

    # -- tables --

    def _insert(
        self, table: Table, key: TableKey, action: Action, params: Sequence[int], priority: int
    ) -> int:
        widths = [field.width_bits for field in table.keys]
        entry = abi.NativeEntry(
            _words(zip(key.values, widths, strict=True)),
            _words(zip(key.masks, widths, strict=True)),
            priority,
            action.index,
            _params(action, params),
        )
        code = self._calls.contents.table_insert(self._alive(), table.index, ctypes.byref(entry))
        if code == abi.EXISTS:
            raise EntryExistsError(f"table {table.name} already has an entry for this key")
        if code == abi.FULL:
            raise TableFullError(f"table {table.name} is full ({table.max_size} entries)")
        _check(int(code), f"table {table.name}")
        return int(code)

    def const_handle(self, table: str, position: int) -> int:
        """create() inserts them first and in order: slot ``position``, in its first generation."""
        return const_handle(position)

    def _modify(self, table: Table, handle: int, action: Action, params: Sequence[int]) -> None:
        code = self._calls.contents.table_modify(
            self._alive(), table.index, handle, action.index, _params(action, params)
        )
        _check(code, f"table {table.name}")

    def _delete(self, table: Table, handle: int) -> None:
        code = self._calls.contents.table_delete(self._alive(), table.index, handle)
        _check(code, f"table {table.name}")

    def _set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        code = self._calls.contents.table_set_default(
            self._alive(), table.index, action.index, _params(action, params)
        )
        _check(code, f"table {table.name}")

    # -- copies and digests --

    def _set_multicast(self, group: int, replicas: Replicas) -> None:
        array = _array(replicas)
        code = self._calls.contents.multicast_set(self._alive(), group, array, len(replicas))
        _check_room(code, f"multicast group {group}")

    def _set_clone_session(self, session: int, replicas: Replicas, most_bytes: int) -> None:
        array = _array(replicas)
        code = self._calls.contents.clone_set(
            self._alive(), session, array, len(replicas), most_bytes
        )
        _check_room(code, f"clone session {session}")

    def take_digest(self) -> tuple[Digest, tuple[int, ...]] | None:
        """See :meth:`Pipeline.take_digest`."""
        words = (ctypes.c_uint64 * _MOST_DIGEST_WORDS)()
        count = self._calls.contents.digest_take(self._alive(), words, len(words))
        if count == abi.NOT_FOUND:
            return None
        _check(count, "a digest")
        digest, values, at = self.program.turns.digests[words[0]], [], 1
        for ref in digest.fields:
            parts = words[at : at + (ref.width_bits + 63) // 64]
            values.append(sum(word << 64 * i for i, word in enumerate(parts)))
            at += len(parts)
        return digest, tuple(values)

    # -- counters and registers --

    def _counter(self, counter: Counter, index: int) -> tuple[int, int]:
        return self._read("counter_read", f"counter {counter.name}[{index}]", counter.index, index)

    def _set_counter(self, counter: Counter, index: int, packets: int, bytes: int) -> None:
        code = self._calls.contents.counter_write(
            self._alive(), counter.index, index, packets, bytes
        )
        _check(code, f"counter {counter.name}[{index}]")

    def _direct_counter(self, table: Table, handle: int | None) -> tuple[int, int]:
        number = -1 if handle is None else handle
        return self._read("direct_counter_read", f"table {table.name}", table.index, number)

    def _set_direct_counter(
        self, table: Table, handle: int | None, packets: int, bytes: int
    ) -> None:
        code = self._calls.contents.direct_counter_write(
            self._alive(), table.index, -1 if handle is None else handle, packets, bytes
        )
        _check(code, f"table {table.name}")

    def _register(self, register: Register, index: int) -> int:
        value = ctypes.c_uint64()
        code = self._calls.contents.register_read(
            self._alive(), register.index, index, ctypes.byref(value)
        )
        _check(code, f"register {register.name}[{index}]")
        return value.value

    def _set_register(self, register: Register, index: int, value: int) -> None:
        code = self._calls.contents.register_write(self._alive(), register.index, index, value)
        _check(code, f"register {register.name}[{index}]")

    # -- life --

    def close(self) -> None:
        """See :meth:`Pipeline.close`."""
        state, self._state = self._state, None
        if state:
            self._calls.contents.destroy(state)

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self.close()

    def _alive(self) -> int:
        if not self._state:
            raise InvalidEntryError("the pipeline is closed")
        return self._state

    def _read(self, function: str, what: str, *args: int) -> tuple[int, int]:
        packets, count = ctypes.c_uint64(), ctypes.c_uint64()
        code = getattr(self._calls.contents, function)(
            self._alive(), *args, ctypes.byref(packets), ctypes.byref(count)
        )
        _check(code, what)
        return packets.value, count.value


def const_handle(position: int) -> int:
    """Of a table's const entry number ``position``, of distinct ones."""
    return 1 << 32 | position


def _words(values: Iterable[tuple[int, int]]) -> Any:
    """Of (value, width in bits) of each."""
    words = [word for value, width_bits in values for word in abi.to_words(value, width_bits)]
    return (ctypes.c_uint64 * max(len(words), 1))(*words)


def _params(action: Action, params: Sequence[int]) -> Any:
    return _words(zip(params, (param.width_bits for param in action.params), strict=True))


def _array(pairs: Replicas) -> ctypes.Array[abi.Replica]:
    return (abi.Replica * max(len(pairs), 1))(*itertools.starmap(abi.Replica, pairs))


def _check_room(code: int, what: str) -> None:
    if code == abi.FULL:
        raise MemoryError(f"no memory for {what}")
    _check(code, what)


def _check(code: int, what: str) -> None:
    if code == abi.NOT_FOUND:
        raise EntryNotFoundError(f"{what}: no such entry or index")
    if code < 0:
        raise InvalidEntryError(f"{what}: refused (code {code})")
