"""One compiled P4 program: packets in, packets out, and its tables."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ina.switch import native_abi as abi
from ina.switch.cache import load_library
from ina.switch.emit_c.emit import VERSION, emit_c
from ina.switch.errors import (
    EntryExistsError,
    EntryNotFoundError,
    InvalidEntryError,
    TableFullError,
)
from ina.switch.ir import Program, load_program
from ina.switch.ir.load import read_json
from ina.switch.ir.program import Action, Table
from ina.switch.ir.turns import SESSION_BITS, Digest
from ina.switch.match import Exact, KeyMatch, Lpm, Optional, Range, Ternary, encode_key, to_words
from ina.switch.passes.plan import make_plan
from ina.switch.queues import LinkQueues

__all__ = ["Exact", "KeyMatch", "Lpm", "Optional", "Pipeline", "Range", "Ternary"]

_BATCH = 256
_MOST_DIGEST_WORDS = 1024
_read = functools.lru_cache(maxsize=4)(load_program)  # a client may set the same program again


class Pipeline:
    """A loaded program with its state. Thread-safe. From :meth:`load` to :meth:`close`."""

    def __init__(self, program: Program, library: ctypes.CDLL, c_source: Path) -> None:
        get = library.ina_pipeline_get
        get.restype = ctypes.POINTER(abi.PipelineStruct)
        self._table = get()
        self._library = library
        self.c_source = c_source
        """The generated C, to read."""
        self.program = program
        self._state: int | None = self._table.contents.create()
        if not self._state:
            raise MemoryError("no memory for the pipeline's state")
        self._output: abi.OutputBuffer | None = None  # a MiB, which not all have a use for
        self._output_lock = threading.Lock()

    @classmethod
    def load(
        cls, bmv2_json: bytes | str | Path, *, cache_dir: Path | None = None, cc: str | None = None
    ) -> Pipeline:
        """Translate, compile (or take from the cache) and load a program.

        Raises UnsupportedProgramError (construct and P4 line), InvalidProgramError,
        CompilerMissingError, CompilationError.
        """
        text = read_json(bmv2_json)
        program = _read(text)
        library, source = load_library(
            text, VERSION, lambda digest: emit_c(make_plan(program), digest), cache_dir, cc
        )
        return cls(program, library, source)

    def power_on(self) -> Pipeline:
        """Another pipeline of the same program, as at power-on: nothing is read or compiled.

        It has memory of its own, so that nothing of this one's state can be left in it; this one
        may be closed before or after.
        """
        return Pipeline(self.program, self._library, self.c_source)

    # -- packets --

    def process(
        self, port: int, packet: bytes, now_ns: int = 0, queues: LinkQueues | None = None
    ) -> list[tuple[int, bytes]]:
        """One packet in, its (egress port, bytes) out."""
        return self.process_batch([(port, packet)], now_ns, queues)

    def process_batch(
        self,
        packets: Sequence[tuple[int, bytes]],
        now_ns: int = 0,
        queues: LinkQueues | None = None,
    ) -> list[tuple[int, bytes]]:
        """Packets in order; all that leave, in order.

        ``queues``: what earlier calls left there waits until its time has passed, and what leaves
        now waits there, too. Without them all queues are empty when the call begins.
        """
        state = self._alive()
        results: list[tuple[int, bytes]] = []
        with self._output_lock:
            output = self._output = self._output or abi.OutputBuffer()
            output.set_depths(queues.depths(now_ns) if queues else {})
            for start in range(0, len(packets), _BATCH):
                batch = packets[start : start + _BATCH]
                array = (abi.PacketIn * len(batch))()
                for slot, (port, data) in zip(array, batch, strict=True):
                    if not 0 <= port < abi.MAX_PORTS:
                        raise InvalidEntryError(
                            f"ingress port {port} is not in 0..{abi.MAX_PORTS - 1}"
                        )
                    slot.data = ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p)
                    slot.length, slot.port, slot.now_ns = len(data), port, now_ns
                done = 0
                while done < len(batch):
                    output.clear()
                    at = ctypes.byref(array, done * ctypes.sizeof(abi.PacketIn))
                    count = self._table.contents.process(
                        state, at, len(batch) - done, ctypes.byref(output.struct)
                    )
                    results += output.packets()
                    done += count
                    if count == 0:
                        output.grow()
            if queues:
                queues.put(results)
        return results

    # -- tables --

    def insert(
        self,
        table: str,
        key: Sequence[KeyMatch],
        action: str,
        params: Sequence[int],
        priority: int = 0,
    ) -> int:
        """Add an entry; returns its handle. ``priority``: larger wins (ternary, range, optional).

        Raises EntryExistsError, TableFullError, InvalidEntryError.
        """
        where = self._find_table(table)
        if where.is_const:
            raise InvalidEntryError(f"table {table} has constant entries")
        keys, masks, prefix = encode_key(where, key)
        chosen = self._find_action(where, action)
        words = self._params(chosen, params)
        entry = abi.NativeEntry(
            keys, masks, priority if prefix is None else prefix, chosen.index, words
        )
        if not -(1 << 31) <= entry.priority < 1 << 31 or entry.priority != (
            priority if prefix is None else prefix
        ):
            raise InvalidEntryError(f"table {table}: priority {priority} is not a 32-bit integer")
        code = self._table.contents.table_insert(self._alive(), where.index, ctypes.byref(entry))
        if code == abi.EXISTS:
            raise EntryExistsError(f"table {table} already has an entry for this key")
        if code == abi.FULL:
            raise TableFullError(f"table {table} is full ({where.max_size} entries)")
        self._check(int(code), f"table {table}")
        return int(code)

    @staticmethod
    def const_handle(position: int) -> int:
        """Handle of a table's const entry; ``position`` counts a table's distinct ones from 0.

        create() inserts them first and in order: slot ``position``, in its first generation.
        """
        return 1 << 32 | position

    def modify(self, table: str, handle: int, action: str, params: Sequence[int]) -> None:
        """Change an entry's action and parameters; its counter goes on."""
        where = self._find_table(table)
        chosen = self._find_action(where, action)
        words = self._params(chosen, params)
        code = self._table.contents.table_modify(
            self._alive(), where.index, handle, chosen.index, words
        )
        self._check(code, f"table {table}")

    def delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        where = self._find_table(table)
        self._check(
            self._table.contents.table_delete(self._alive(), where.index, handle), f"table {table}"
        )

    def set_default(self, table: str, action: str | None, params: Sequence[int] = ()) -> None:
        """Change the default action; None goes back to the program's own."""
        where = self._find_table(table)
        if where.default_is_const:
            raise InvalidEntryError(f"table {table} has a constant default action")
        if action is None:
            chosen, params = self.program.actions[where.default.action], where.default.args
        else:
            chosen = self._find_action(where, action)
        words = self._params(chosen, params)
        code = self._table.contents.table_set_default(
            self._alive(), where.index, chosen.index, words
        )
        self._check(code, f"table {table}")

    def set_multicast(self, group: int, replicas: Sequence[tuple[int, int]]) -> None:
        """Replace a group's (egress_port, rid) pairs; none deletes the group. Groups: 1..65535."""
        what = f"multicast group {group}"
        if not 1 <= group < 1 << 16:
            raise InvalidEntryError(f"{what} is not in 1..65535")
        array = _replicas(replicas)
        code = self._table.contents.multicast_set(self._alive(), group, array, len(replicas))
        self._check_replicas(code, what)

    def set_clone_session(
        self, session: int, replicas: Sequence[tuple[int, int]], most_bytes: int = 0
    ) -> None:
        """Where clones of a session (0..32767) go: (egress_port, rid) pairs; none deletes it.

        ``most_bytes``: clones are cut to so many; 0: they are not.
        """
        what = f"clone session {session}"
        if not 0 <= session < 1 << SESSION_BITS:
            raise InvalidEntryError(f"{what} is not in 0..{(1 << SESSION_BITS) - 1}")
        if not 0 <= most_bytes < 1 << 32:
            raise InvalidEntryError(f"{what}: {most_bytes} bytes is not in 0..{(1 << 32) - 1}")
        array = _replicas(replicas)
        code = self._table.contents.clone_set(
            self._alive(), session, array, len(replicas), most_bytes
        )
        self._check_replicas(code, what)

    def take_digest(self) -> tuple[Digest, tuple[int, ...]] | None:
        """The oldest digest that was not taken, with its values; None: there is none."""
        words = (ctypes.c_uint64 * _MOST_DIGEST_WORDS)()
        count = self._table.contents.digest_take(self._alive(), words, len(words))
        if count == abi.NOT_FOUND:
            return None
        self._check(count, "a digest")
        digest, values, at = self.program.turns.digests[words[0]], [], 1
        for ref in digest.fields:
            parts = words[at : at + (ref.width_bits + 63) // 64]
            values.append(sum(word << 64 * i for i, word in enumerate(parts)))
            at += len(parts)
        return digest, tuple(values)

    # -- counters and registers --

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of an indirect counter."""
        where = self._find("counter", self.program.counters, name)
        return self._read(
            "counter_read", f"counter {name}[{index}]", where.index, self._index(index)
        )

    def set_counter(self, name: str, index: int, packets: int, bytes: int) -> None:
        """Write an indirect counter."""
        where = self._find("counter", self.program.counters, name)
        code = self._table.contents.counter_write(
            self._alive(), where.index, self._index(index), packets, bytes
        )
        self._check(code, f"counter {name}[{index}]")

    def direct_counter(self, table: str, handle: int | None) -> tuple[int, int]:
        """(packets, bytes) of an entry; handle None: the default entry."""
        where = self._with_counter(table)
        number = -1 if handle is None else handle
        return self._read("direct_counter_read", f"table {table}", where.index, number)

    def set_direct_counter(self, table: str, handle: int | None, packets: int, bytes: int) -> None:
        """Write an entry's counter."""
        where = self._with_counter(table)
        code = self._table.contents.direct_counter_write(
            self._alive(), where.index, -1 if handle is None else handle, packets, bytes
        )
        self._check(code, f"table {table}")

    def register(self, name: str, index: int) -> int:
        """One register (its low 64 bits); for debugging and tests only."""
        where = self._find("register", self.program.registers, name)
        value = ctypes.c_uint64()
        code = self._table.contents.register_read(
            self._alive(), where.index, self._index(index), ctypes.byref(value)
        )
        self._check(code, f"register {name}[{index}]")
        return value.value

    def set_register(self, name: str, index: int, value: int) -> None:
        """Write one register (64 bits at most), cut to its width; for made-up faults, and tests."""
        where = self._find("register", self.program.registers, name)
        code = self._table.contents.register_write(
            self._alive(), where.index, self._index(index), value
        )
        self._check(code, f"register {name}[{index}]")

    # -- life --

    @property
    def native(self) -> tuple[int, int]:
        """Addresses of (const ina_pipeline *, void *state), valid until :meth:`close`."""
        address = ctypes.cast(self._table, ctypes.c_void_p).value
        assert address is not None
        return address, self._alive()

    def close(self) -> None:
        """Free the state. Nothing may be using :attr:`native` any more."""
        state, self._state = self._state, None
        if state:
            self._table.contents.destroy(state)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_state", None):
            self.close()

    # -- helpers --

    def _alive(self) -> int:
        if not self._state:
            raise InvalidEntryError("the pipeline is closed")
        return self._state

    def _find(self, kind: str, items: Sequence[Any], name: str) -> Any:
        for item in items:
            if item.name == name:
                return item
        raise InvalidEntryError(f"the program has no {kind} {name!r}")

    def _find_table(self, name: str) -> Table:
        table: Table = self._find("table", self.program.tables, name)
        return table

    def _with_counter(self, name: str) -> Table:
        table = self._find_table(name)
        if not table.has_direct_counter:
            raise InvalidEntryError(f"table {name} has no direct counter")
        return table

    def _find_action(self, table: Table, name: str) -> Action:
        action = table.action(name)
        if action is None:
            raise InvalidEntryError(f"table {table.name} has no action {name!r}")
        return action

    def _params(self, action: Action, params: Sequence[int]) -> Any:
        if len(params) != len(action.params):
            raise InvalidEntryError(
                f"action {action.name} takes {len(action.params)} parameters, not {len(params)}"
            )
        words: list[int] = []
        for param, value in zip(action.params, params, strict=True):
            if not 0 <= value < 1 << param.width_bits:
                raise InvalidEntryError(
                    f"action {action.name}: {param.name} = {value} "
                    f"does not fit {param.width_bits} bits"
                )
            words += to_words(value, param.width_bits)
        return (ctypes.c_uint64 * max(len(words), 1))(*words)

    @staticmethod
    def _index(index: int) -> int:
        if not 0 <= index < 1 << 64:
            raise InvalidEntryError(f"index {index} is out of range")
        return index

    def _read(self, function: str, what: str, *args: int) -> tuple[int, int]:
        packets, count = ctypes.c_uint64(), ctypes.c_uint64()
        code = getattr(self._table.contents, function)(
            self._alive(), *args, ctypes.byref(packets), ctypes.byref(count)
        )
        self._check(code, what)
        return packets.value, count.value

    @classmethod
    def _check_replicas(cls, code: int, what: str) -> None:
        if code == abi.FULL:
            raise MemoryError(f"no memory for {what}")
        cls._check(code, what)

    @staticmethod
    def _check(code: int, what: str) -> None:
        if code == abi.NOT_FOUND:
            raise EntryNotFoundError(f"{what}: no such entry or index")
        if code < 0:
            raise InvalidEntryError(f"{what}: refused (code {code})")


def _replicas(pairs: Sequence[tuple[int, int]]) -> ctypes.Array[abi.Replica]:
    for port, rid in pairs:
        if not 0 <= port < abi.MAX_PORTS or not 0 <= rid < 1 << 16:
            raise InvalidEntryError(f"replica (port {port}, rid {rid}) is out of range")
    return (abi.Replica * max(len(pairs), 1))(*itertools.starmap(abi.Replica, pairs))
