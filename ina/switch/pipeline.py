"""A P4 program that runs: packets in, packets out, and its tables, whatever runs it.

What a target has to do stands here as abstract methods, in numbers that fit. Names, widths and
ranges are checked before they are called.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ina.switch.errors import InvalidEntryError
from ina.switch.ir import Program
from ina.switch.ir.data import Counter, Register
from ina.switch.ir.program import Action, Table
from ina.switch.ir.turns import SESSION_BITS, Digest
from ina.switch.match import KeyMatch, TableKey, table_key
from ina.switch.queues import LinkQueues

MAX_PORTS = 512
"""Ports are 0 to 511, as v1model's 9 bits; what is sent to 511 is dropped."""
Packets = Sequence[tuple[int, bytes]]
"""(port, bytes) of each."""
Replicas = Sequence[tuple[int, int]]
"""(egress port, rid) of each copy."""


class Pipeline(ABC):
    """A program with its state, from being powered on to :meth:`close`. Thread-safe."""

    def __init__(self, program: Program, generated: Path | None = None) -> None:
        self.program = program
        self.generated = generated
        """The code that was made of it, to read; None: there is none."""
        self._process_lock = threading.Lock()

    # -- packets --

    def process(
        self, port: int, packet: bytes, now_ns: int = 0, queues: LinkQueues | None = None
    ) -> list[tuple[int, bytes]]:
        """One packet in, its (egress port, bytes) out."""
        return self.process_batch([(port, packet)], now_ns, queues)

    def process_batch(
        self, packets: Packets, now_ns: int = 0, queues: LinkQueues | None = None
    ) -> list[tuple[int, bytes]]:
        """Packets in order; all that leave, in order.

        ``queues``: what earlier calls left there waits until its time has passed, and what leaves
        now waits there, too. Without them all queues are empty when the call begins.
        """
        for port, _ in packets:
            if not 0 <= port < MAX_PORTS:
                raise InvalidEntryError(f"ingress port {port} is not in 0..{MAX_PORTS - 1}")
        with self._process_lock:
            left = self._process(packets, now_ns, queues.depths(now_ns) if queues else {})
            if queues:
                queues.put(left)
        return left

    @abstractmethod
    def _process(
        self, packets: Packets, now_ns: int, depths: Mapping[int, int]
    ) -> list[tuple[int, bytes]]:
        """One call at a time. ``depths``: packets that wait at egress ports; elsewhere none do."""

    @property
    @abstractmethod
    def native(self) -> tuple[int, int]:
        """Addresses of (const ina_pipeline *, void *state), for what hands packets over in C++.

        Valid until :meth:`close`.
        """

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
        where = self._table(table)
        if where.is_const:
            raise InvalidEntryError(f"table {table} has constant entries")
        found = table_key(where, key)
        chosen = self._action(where, action)
        if not -(1 << 31) <= priority < 1 << 31:
            raise InvalidEntryError(f"table {table}: priority {priority} is not a 32-bit integer")
        priority = priority if found.prefix_bits is None else found.prefix_bits
        return self._insert(where, found, chosen, _checked(chosen, params), priority)

    @abstractmethod
    def _insert(
        self, table: Table, key: TableKey, action: Action, params: Sequence[int], priority: int
    ) -> int:
        """``priority``: of an LPM table, the length of the prefix."""

    @abstractmethod
    def const_handle(self, table: str, position: int) -> int:
        """Handle of a table's const entry; ``position`` counts its distinct ones from 0."""

    def modify(self, table: str, handle: int, action: str, params: Sequence[int]) -> None:
        """Change an entry's action and parameters; its counter goes on.

        Raises EntryNotFoundError, InvalidEntryError.
        """
        where = self._table(table)
        chosen = self._action(where, action)
        self._modify(where, handle, chosen, _checked(chosen, params))

    @abstractmethod
    def _modify(self, table: Table, handle: int, action: Action, params: Sequence[int]) -> None:
        """Raises EntryNotFoundError."""

    def delete(self, table: str, handle: int) -> None:
        """Remove an entry. Raises EntryNotFoundError."""
        self._delete(self._table(table), handle)

    @abstractmethod
    def _delete(self, table: Table, handle: int) -> None:
        """Raises EntryNotFoundError."""

    def set_default(self, table: str, action: str | None, params: Sequence[int] = ()) -> None:
        """Change the default action; None goes back to the program's own."""
        where = self._table(table)
        if where.default_is_const:
            raise InvalidEntryError(f"table {table} has a constant default action")
        if action is None:
            chosen, params = self.program.actions[where.default.action], where.default.args
        else:
            chosen = self._action(where, action)
        self._set_default(where, chosen, _checked(chosen, params))

    @abstractmethod
    def _set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        """Its counter goes on."""

    # -- copies and digests --

    def set_multicast(self, group: int, replicas: Replicas) -> None:
        """Replace a group's (egress_port, rid) pairs; none deletes the group. Groups: 1..65535."""
        if not 1 <= group < 1 << 16:
            raise InvalidEntryError(f"multicast group {group} is not in 1..65535")
        _check_replicas(replicas)
        self._set_multicast(group, replicas)

    @abstractmethod
    def _set_multicast(self, group: int, replicas: Replicas) -> None:
        """Raises MemoryError."""

    def set_clone_session(self, session: int, replicas: Replicas, most_bytes: int = 0) -> None:
        """Where clones of a session (0..32767) go: (egress_port, rid) pairs; none deletes it.

        ``most_bytes``: clones are cut to so many; 0: they are not.
        """
        what = f"clone session {session}"
        if not 0 <= session < 1 << SESSION_BITS:
            raise InvalidEntryError(f"{what} is not in 0..{(1 << SESSION_BITS) - 1}")
        if not 0 <= most_bytes < 1 << 32:
            raise InvalidEntryError(f"{what}: {most_bytes} bytes is not in 0..{(1 << 32) - 1}")
        _check_replicas(replicas)
        self._set_clone_session(session, replicas, most_bytes)

    @abstractmethod
    def _set_clone_session(self, session: int, replicas: Replicas, most_bytes: int) -> None:
        """Raises MemoryError."""

    @abstractmethod
    def take_digest(self) -> tuple[Digest, tuple[int, ...]] | None:
        """The oldest digest that was not taken, with its values; None: there is none."""

    # -- counters and registers --

    def counter(self, name: str, index: int) -> tuple[int, int]:
        """(packets, bytes) of an indirect counter. Raises EntryNotFoundError: no such index."""
        return self._counter(_named("counter", self.program.counters, name), _index(index))

    @abstractmethod
    def _counter(self, counter: Counter, index: int) -> tuple[int, int]: ...

    def set_counter(self, name: str, index: int, packets: int, bytes: int) -> None:
        """Write an indirect counter. Raises EntryNotFoundError: no such index."""
        where = _named("counter", self.program.counters, name)
        self._set_counter(where, _index(index), packets, bytes)

    @abstractmethod
    def _set_counter(self, counter: Counter, index: int, packets: int, bytes: int) -> None: ...

    def direct_counter(self, table: str, handle: int | None) -> tuple[int, int]:
        """(packets, bytes) of an entry; handle None: the default entry."""
        return self._direct_counter(self._with_counter(table), handle)

    @abstractmethod
    def _direct_counter(self, table: Table, handle: int | None) -> tuple[int, int]: ...

    def set_direct_counter(self, table: str, handle: int | None, packets: int, bytes: int) -> None:
        """Write an entry's counter."""
        self._set_direct_counter(self._with_counter(table), handle, packets, bytes)

    @abstractmethod
    def _set_direct_counter(
        self, table: Table, handle: int | None, packets: int, bytes: int
    ) -> None: ...

    def register(self, name: str, index: int) -> int:
        """One register (its low 64 bits); for debugging and tests only."""
        return self._register(_named("register", self.program.registers, name), _index(index))

    @abstractmethod
    def _register(self, register: Register, index: int) -> int: ...

    def set_register(self, name: str, index: int, value: int) -> None:
        """Write one register (64 bits at most), cut to its width; for made-up faults, and tests."""
        where = _named("register", self.program.registers, name)
        self._set_register(where, _index(index), value)

    @abstractmethod
    def _set_register(self, register: Register, index: int, value: int) -> None: ...

    # -- life --

    def settle(self) -> None:  # noqa: B027 - most are never taken over
        """Of one that was taken over: what was not inserted again is there no longer."""

    @abstractmethod
    def close(self) -> None:
        """Free the state; may be called again. Nothing may use :attr:`native` any more."""

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    # -- names --

    def _table(self, name: str) -> Table:
        table: Table = _named("table", self.program.tables, name)
        return table

    def _with_counter(self, name: str) -> Table:
        table = self._table(name)
        if not table.has_direct_counter:
            raise InvalidEntryError(f"table {name} has no direct counter")
        return table

    def _action(self, table: Table, name: str) -> Action:
        action = table.action(name)
        if action is None:
            raise InvalidEntryError(f"table {table.name} has no action {name!r}")
        return action


def _named(kind: str, items: Sequence[Any], name: str) -> Any:
    for item in items:
        if item.name == name:
            return item
    raise InvalidEntryError(f"the program has no {kind} {name!r}")


def _checked(action: Action, params: Sequence[int]) -> Sequence[int]:
    if len(params) != len(action.params):
        raise InvalidEntryError(
            f"action {action.name} takes {len(action.params)} parameters, not {len(params)}"
        )
    for param, value in zip(action.params, params, strict=True):
        if not 0 <= value < 1 << param.width_bits:
            raise InvalidEntryError(
                f"action {action.name}: {param.name} = {value} does not fit {param.width_bits} bits"
            )
    return params


def _index(index: int) -> int:
    if not 0 <= index < 1 << 64:
        raise InvalidEntryError(f"index {index} is out of range")
    return index


def _check_replicas(pairs: Replicas) -> None:
    for port, rid in pairs:
        if not 0 <= port < MAX_PORTS or not 0 <= rid < 1 << 16:
            raise InvalidEntryError(f"replica (port {port}, rid {rid}) is out of range")
