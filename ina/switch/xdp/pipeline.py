"""A program in the kernel as a Pipeline: its maps, and packets one at a time.

:meth:`XdpPipeline.process` has the kernel run both programs on a frame in memory
(BPF_PROG_TEST_RUN), which needs no interface. A frame that no Ethernet interface would give, of
less than 14 bytes or more than a page holds, is dropped.
"""

from __future__ import annotations

import mmap
import struct
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ina.switch.emit_ebpf.carry import IS_GROUP, IS_GROUP_AT, TO_AT
from ina.switch.emit_ebpf.emit import EbpfSource
from ina.switch.emit_ebpf.memory import counts, entries, hits
from ina.switch.emit_ebpf.placed import entry_words
from ina.switch.errors import EntryNotFoundError, InvalidEntryError, UnsupportedProgramError
from ina.switch.ir import Program
from ina.switch.ir.data import Counter, Register
from ina.switch.ir.program import Action, Table
from ina.switch.ir.turns import Digest
from ina.switch.match import TableKey
from ina.switch.passes.tables import TablePlan
from ina.switch.pipeline import Packets, Pipeline, Replicas
from ina.switch.xdp.attached import NO_LOSSES, AttachedPorts
from ina.switch.xdp.libbpf import LOOPBACK, Map, Object, Programs
from ina.switch.xdp.pin import Pin
from ina.switch.xdp.pins import PinnedPrograms
from ina.switch.xdp.placed import Store, placed_store
from ina.switch.xdp.registers import Cell, cells
from ina.switch.xdp.tables import MapStore, MapTable, entry_bytes

_PASS, _REDIRECT = 2, 4
"""XDP_PASS, XDP_REDIRECT."""
_LEAST_BYTES, MOST_BYTES = 14, 3520
"""Of a frame: Ethernet's header; a page less what the kernel keeps in front of a frame and behind
it."""
_IN_MEMORY = ("ina_ingress", "ina_egress_of_test")
"""Programs that run without interfaces."""
_WORD_BYTES, _COUNTER_BYTES = 8, 16


class XdpPipeline(Pipeline):
    """Programs and maps of one object file. Another power-on is another set of them."""

    def __init__(self, program: Program, source: EbpfSource, kernel: Programs, path: Path) -> None:
        """``kernel``: of the object file ``path``, new, or pinned: then it was taken over, and goes
        on after :meth:`close`. Raises XdpError."""
        super().__init__(program, path.with_suffix(".c"))
        self._source = source
        self._object: Programs | None = kernel
        self._goes_on = isinstance(kernel, PinnedPrograms)
        self._attached: AttachedPorts | None = None
        self._maps = self._object.maps
        self._processors = _possible_processors()
        layout = source.layout
        plans = layout.plan.tables
        self._placed = _Words(self._maps.get(".data.tables"))
        self._tables = {plan.table.name: MapTable(plan, self._store(plan)) for plan in plans}
        self._cells = cells(layout)
        self._groups: dict[int, Replicas] = {}
        defaults = self._maps[".data.defaults"]
        self._defaults = mmap.mmap(defaults.descriptor, _pages(defaults.value_bytes))
        self._unset = {plan.table.name: plan.table for plan in plans}
        """Tables whose default entry nobody has set."""
        for plan in plans:
            if self._goes_on:
                self._tables[plan.table.name].find()
            self._insert_const(plan)
        if not self._goes_on:
            self._maps[".data.began"].write(bytes(4), struct.pack("<Q", time.monotonic_ns()))
            self.settle()

    @classmethod
    def power_on(
        cls, program: Program, source: EbpfSource, path: Path, *, at_ports: bool
    ) -> XdpPipeline:
        """``at_ports``: it can be attached. Raises XdpError: the kernel refuses; RefusedError: its
        verifier does."""
        kernel = Object(path, lambda name: not at_ports and name not in _IN_MEMORY)
        return cls(program, source, kernel, path)

    def settle(self) -> None:
        """See :meth:`Pipeline.settle`."""
        for table in list(self._unset.values()):
            action = self.program.actions[table.default.action]
            self._set_default(table, action, table.default.args)
        for found in self._tables.values():
            found.settle()

    # -- packets --

    def _process(
        self, packets: Packets, now_ns: int, depths: Mapping[int, int]
    ) -> list[tuple[int, bytes]]:
        return [left for port, data in packets for left in self._one(port, data)]

    def _one(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        if not _LEAST_BYTES <= len(data) <= MOST_BYTES:
            return []
        kernel = self._alive()
        self._maps["ina_ports"].write(struct.pack("<I", LOOPBACK), struct.pack("<I", port))
        arrived = kernel.run("ina_ingress", data)
        if arrived.verdict != _REDIRECT:
            return []
        left = []
        for to, rid in self._copies(arrived.meta):
            self._maps["ina_copy_of_test"].write(bytes(4), struct.pack("<II", to, rid))
            copy = kernel.run("ina_egress_of_test", arrived.data, meta=arrived.meta)
            if copy.verdict == _PASS:
                left.append((to, copy.data))
        return left

    def repeat(self, data: bytes, times: int) -> int:
        """Has ingress take a frame again and again, by the port that the last one came by, on this
        processor; the program drops it. Returns ns a turn. Threads may do so side by side."""
        return self._alive().run("ina_ingress", data, repeat=times).duration_ns

    def _copies(self, carry: bytes) -> Replicas:
        (to,) = struct.unpack_from("<H", carry, TO_AT)
        is_group = carry[IS_GROUP_AT] & IS_GROUP
        return self._groups.get(to, ()) if is_group else ((to, 0),)

    @property
    def kernel(self) -> Programs:
        """Its programs and maps, until it is closed. Raises InvalidEntryError: it is."""
        return self._alive()

    @property
    def native(self) -> tuple[int, int]:
        """Raises UnsupportedProgramError: nothing of it is in this process."""
        raise UnsupportedProgramError("a pipeline of device xdp behind ports of this process")

    # -- tables --

    def _insert(
        self, table: Table, key: TableKey, action: Action, params: Sequence[int], priority: int
    ) -> int:
        self._alive()
        handle, number = self._tables[table.name].insert(key, action, params, priority)
        if table.has_direct_counter and number >= 0:
            self._write_count(self._hits(table), number, 0, 0)
        return handle

    def _insert_const(self, plan: TablePlan) -> None:
        for entry in plan.table.entries:
            keys = [(it.value, it.mask) for it in entry.key]
            widths = [key.width_bits for key in plan.table.keys]
            values = tuple(value for value, _ in keys)
            masks = tuple(
                (1 << width) - 1 if mask < 0 else mask
                for (_, mask), width in zip(keys, widths, strict=True)
            )
            found = TableKey(values, masks, entry.priority)
            action = self.program.actions[entry.call.action]
            self._tables[plan.table.name].insert(found, action, entry.call.args, entry.priority)

    def _store(self, plan: TablePlan) -> Store | None:
        placed = self._source.memory.placed.get(plan.table.name)
        if placed is not None:
            return placed_store(placed, self._placed.view)
        found = self._maps.get(entries(self._source.layout.table(plan)))
        return MapStore(found) if found is not None else None

    def const_handle(self, table: str, position: int) -> int:
        """They are inserted first, and in order."""
        return position + 1

    def _modify(self, table: Table, handle: int, action: Action, params: Sequence[int]) -> None:
        self._alive()
        self._tables[table.name].modify(handle, action, params)

    def _delete(self, table: Table, handle: int) -> None:
        self._alive()
        self._tables[table.name].delete(handle)

    def _set_default(self, table: Table, action: Action, params: Sequence[int]) -> None:
        """Written beside the one that packets find, which they then do no longer."""
        self._alive()
        self._unset.pop(table.name, None)
        plan = self._tables[table.name].plan
        at = self._source.memory.defaults[table.name] * _WORD_BYTES
        other = 1 - self._defaults[at]
        entry = entry_bytes(plan, action, params, table.max_size)
        places = [at + _WORD_BYTES * (1 + which * entry_words(plan)) for which in (0, 1)]
        now = places[1 - other]
        if self._defaults[now : now + len(entry)] == entry:
            return
        place = places[other]
        self._defaults[place : place + len(entry)] = entry
        self._defaults[at] = other

    # -- copies and digests --

    def _set_multicast(self, group: int, replicas: Replicas) -> None:
        self._alive()
        if self._attached is not None:
            self._attached.check(group, replicas)
            self._attached.set_group(group, replicas)
        if replicas:
            self._groups[group] = tuple(replicas)
        else:
            self._groups.pop(group, None)

    def _set_clone_session(self, session: int, replicas: Replicas, most_bytes: int) -> None:
        """No program with clones is loaded: a session is of no use, and no harm."""

    def take_digest(self) -> tuple[Digest, tuple[int, ...]] | None:
        """No program with digests is loaded."""
        return None

    # -- counters and registers --

    def _counter(self, counter: Counter, index: int) -> tuple[int, int]:
        where = self._maps[counts(self._source.layout.counter(counter.name))]
        _check_index(f"counter {counter.name}", index, counter.size)
        return self._read_count(where, index)

    def _set_counter(self, counter: Counter, index: int, packets: int, bytes: int) -> None:
        where = self._maps[counts(self._source.layout.counter(counter.name))]
        _check_index(f"counter {counter.name}", index, counter.size)
        self._write_count(where, index, packets, bytes)

    def _direct_counter(self, table: Table, handle: int | None) -> tuple[int, int]:
        return self._read_count(self._hits(table), self._tables[table.name].number(handle))

    def _set_direct_counter(
        self, table: Table, handle: int | None, packets: int, bytes: int
    ) -> None:
        number = self._tables[table.name].number(handle)
        self._write_count(self._hits(table), number, packets, bytes)

    def _register(self, register: Register, index: int) -> int:
        cell, value = self._element(register, index)
        return int.from_bytes(value[cell.offset : cell.offset + cell.size_bytes][:8], "little")

    def _set_register(self, register: Register, index: int, value: int) -> None:
        cell, element = self._element(register, index)
        cut = value & (1 << register.width_bits) - 1
        written = bytearray(element)
        written[cell.offset : cell.offset + cell.size_bytes] = cut.to_bytes(
            cell.size_bytes, "little"
        )
        self._maps[cell.group].write(struct.pack("<I", index), bytes(written))

    def _element(self, register: Register, index: int) -> tuple[Cell, bytes]:
        self._alive()
        _check_index(f"register {register.name}", index, register.size)
        cell = self._cells[register.name]
        value = self._maps[cell.group].read(struct.pack("<I", index))
        assert value is not None
        return cell, value

    # -- at interfaces --

    def attach(
        self,
        interfaces: Mapping[int, int],
        cpu_port: int,
        *,
        is_generic: bool = False,
        losses: Mapping[int, float] = NO_LOSSES,
    ) -> int:
        """From now on frames leave by interfaces, as :class:`AttachedPorts` has them; returns the
        program for each of them. Raises XdpError, InvalidEntryError: a group cannot be."""
        kernel = self._alive()
        if self._attached is None:
            self._attached = AttachedPorts(
                kernel, interfaces, cpu_port, is_generic=is_generic, losses=losses
            )
            for group in sorted(self._attached.groups | self._groups.keys()):
                replicas = self._groups.get(group, ())
                self._attached.check(group, replicas)
                self._attached.set_group(group, replicas)
        return kernel.program("ina_ingress")

    def outlive(self, pin: Pin) -> None:
        """Pins it, if it is not: it goes on after :meth:`close`. Raises XdpError."""
        if not self._goes_on:
            pin.pin(self._alive())
            self._goes_on = True

    def inject(self, packet: bytes) -> None:
        """A frame of the controller. Raises XdpError."""
        if self._attached is not None:
            self._attached.inject(packet)

    def next_cpu_packet(self, timeout_ms: int) -> bytes | None:
        """A frame for the controller; None: none came in time."""
        return None if self._attached is None else self._attached.ring.next(timeout_ms)

    # -- life --

    def close(self) -> None:
        """See :meth:`Pipeline.close`."""
        attached, self._attached = self._attached, None
        if attached is not None:
            attached.close(goes_on=self._goes_on)
        kernel, self._object = self._object, None
        if kernel is not None:
            self._defaults.close()
            self._placed.close()
            kernel.close()

    def _alive(self) -> Programs:
        if self._object is None:
            raise InvalidEntryError("the pipeline is closed")
        return self._object

    def _hits(self, table: Table) -> Map:
        return self._maps[hits(self._source.layout.table(self._tables[table.name].plan))]

    def _read_count(self, where: Map, index: int) -> tuple[int, int]:
        """Of all processors."""
        self._alive()
        room = _COUNTER_BYTES * self._processors
        values = where.read(struct.pack("<I", index), room)
        assert values is not None
        pairs = list(struct.iter_unpack("<QQ", values))
        mask = (1 << 64) - 1
        return sum(it[0] for it in pairs) & mask, sum(it[1] for it in pairs) & mask

    def _write_count(self, where: Map, index: int, packets: int, octets: int) -> None:
        """All of it to the first processor's."""
        self._alive()
        rest = bytes(_COUNTER_BYTES * (self._processors - 1))
        where.write(struct.pack("<I", index), struct.pack("<QQ", packets, octets) + rest)


class _Words:
    """An array of the kernel's as memory of this process."""

    def __init__(self, array: Map | None) -> None:
        """None: of no words."""
        self._memory = None
        if array is not None:
            self._memory = mmap.mmap(array.descriptor, _pages(array.value_bytes))
        self.view = memoryview(self._memory or b"").cast("Q")

    def close(self) -> None:
        """Idempotent."""
        self.view.release()
        if self._memory is not None:
            self._memory.close()


def _check_index(what: str, index: int, size: int) -> None:
    if index >= size:
        raise EntryNotFoundError(f"{what}[{index}]: no such entry or index")


def _possible_processors() -> int:
    """As per-processor values have them: also of processors that could be added."""
    text = Path("/sys/devices/system/cpu/possible").read_text().strip()
    return 1 + max(int(part.split("-")[-1]) for part in text.split(","))


def _pages(size_bytes: int) -> int:
    return -(-size_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
