"""A small synchronous BFRuntime client: what a conformance test writes and reads on a Tofino."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from ina.controller.switches.southbound.bfrt.entries import HARDWARE, Entries
from ina.controller.switches.southbound.bfrt.multicast import Multicast
from ina.controller.switches.southbound.bfrt.program import PIPE, Program
from ina.controller.switches.southbound.bfrt.refusals import Refusals
from ina.controller.switches.southbound.bfrt.sde import load_client
from ina.tables.errors import SwitchError
from ina.tables.values import AnyItem, Count, Counter, CounterRef, DefaultAction, Entry, Group, Item
from ina.testing.device import Program as CompiledProgram
from ina.testing.errors import DeviceError
from ina.testing.p4runtime_device import ControlPlane, P4RuntimeDevice
from ina.testing.wire import Wire

CLIENT_ID = 99
"""Unlike a controller's, which are small."""
ALL_PIPES = 0xFFFF
_SUBSCRIBE_S, _SUBSCRIBE_TRIES = 2.0, 5
CALL_DEADLINE_S = 120.0
"""For each call, and for emptying all tables."""
_STATE_TABLES = ("Counter", "Register")

_T = TypeVar("_T")


class BfrtClient:
    """Has one program of one device. From construction to :meth:`close`."""

    def __init__(self, address: str, device_id: int, program: str = "") -> None:
        """``program``: its name in the SDE; empty: the one that runs. Raises DeviceError."""
        self.packet_ins: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        """Always empty: BFRuntime has no packets."""
        gc = self._gc = load_client()
        self._refusals = Refusals(gc, f"BFRuntime device {device_id} at {address}")
        self._target = gc.Target(device_id=device_id, pipe_id=ALL_PIPES)
        self._interface = self._try("connect", lambda: self._open(address, device_id))
        try:
            self._try("bind", lambda: self._learn(program))
        except DeviceError:
            self._interface.channel.close()  # or a late answer binds the program for nobody
            raise

    def close(self) -> None:
        """Lets the program go; the device keeps its state."""
        self._try("close", self._interface.tear_down_stream)
        self._interface.channel.close()

    def set_pipeline(self, program: CompiledProgram) -> None:
        """Empties every table, group, counter and register. The SDE has loaded the program."""
        self._try("reset", self._reset)

    def insert(self, wanted: Sequence[AnyItem]) -> None:
        """Writes entries and groups, and sets default actions. Raises DeviceError."""
        self._try("insert", lambda: self._each(wanted, self._entries.insert, self._set_default))

    def delete(self, wanted: Sequence[AnyItem]) -> None:
        """Takes them off; default actions go back to the program's own. Raises DeviceError."""
        self._try("delete", lambda: self._each(wanted, self._entries.delete, self._reset_default))

    def modify(self, groups: Sequence[Group]) -> None:
        """Gives groups that are there other copies. Raises DeviceError."""
        self._try("modify", lambda: self._entries.modify(groups))

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """Reads counters, of all pipes together."""
        return self._try("counters", lambda: [self._count(ref) for ref in refs])

    def packet_out(self, packet: bytes, egress_port: int) -> None:
        """BFRuntime has none."""
        raise DeviceError("BFRuntime sends no packets: the CPU port is an interface of the board")

    def _open(self, address: str, device_id: int) -> Any:
        return self._gc.ClientInterface(
            address,
            client_id=CLIENT_ID,
            device_id=device_id,
            notifications=self._gc.Notifications(False, False, False),
            timeout=_SUBSCRIBE_S,
            num_tries=_SUBSCRIBE_TRIES,
        )

    def _learn(self, program: str) -> None:
        info = self._interface.bfrt_info_get(program or None)
        self._program = Program(self._gc, info, self._refusals)
        self._interface.bind_pipeline_config(self._program.name)
        self._multicast = Multicast(self._gc, info, self._target, self._refusals)
        self._entries = Entries(
            self._gc, self._target, self._program, self._multicast, self._refusals
        )
        self._state = [
            full.removeprefix(PIPE)
            for full, table in info.parsed_info.table_info_dict_get().items()
            if full.startswith(PIPE) and table.table_type in _STATE_TABLES
        ]

    def _reset(self) -> None:
        for group in self._multicast.read():
            self._multicast.delete(group.number)
        for name in self._program.tables():
            table = self._program.table(name)
            if table.info.key_field_name_list_get():
                table.entry_del(self._target, [])
            if not table.info.has_const_default_action_get():
                table.default_entry_reset(self._target)
        for name in self._state:
            self._program.table(name).entry_del(self._target, [])

    def _each(
        self,
        wanted: Iterable[AnyItem],
        write: Callable[[Iterable[Item]], None],
        default: Callable[[DefaultAction], None],
    ) -> None:
        for item in wanted:
            match item:
                case DefaultAction():
                    default(item)
                case Entry() | Group():
                    write([item])
                case _:
                    raise self._refusals.error(f"BFRuntime writes no {type(item).__name__} here")

    def _set_default(self, item: DefaultAction) -> None:
        data = self._program.data(item.table, item.action, item.params)
        self._program.table(item.table).default_entry_set(self._target, data)

    def _reset_default(self, item: DefaultAction) -> None:
        self._program.table(item.table).default_entry_reset(self._target)

    def _count(self, ref: CounterRef) -> Count:
        if isinstance(ref, Counter):
            table = self._program.table(ref.name)
            key = self._program.cell_key(ref.name, ref.index)
        else:
            table = self._program.table(ref.table)
            key = self._program.key(ref.table, ref.match)
        for data, _ in table.entry_get(self._target, [key], HARDWARE):
            return self._program.count(data)
        raise DeviceError(f"no counter {ref}")

    def _try(self, doing: str, function: Callable[[], _T]) -> _T:
        """In a thread of its own: the SDE's client waits for an answer without an end."""
        ended: queue.SimpleQueue[Callable[[], _T]] = queue.SimpleQueue()
        threading.Thread(
            target=lambda: ended.put(_outcome(function)), name="bfrt-call", daemon=True
        ).start()
        try:
            try:
                outcome = ended.get(timeout=CALL_DEADLINE_S)
            except queue.Empty:
                late = f"{doing}: no answer within {CALL_DEADLINE_S:g} s"
                raise self._refusals.error(late) from None
            return outcome()
        except SwitchError as error:
            raise DeviceError(str(error)) from None
        except self._refusals.known as error:
            raise DeviceError(str(self._refusals.translate(error, doing))) from None


def _outcome(function: Callable[[], _T]) -> Callable[[], _T]:
    """Calls it; what is returned gives, or raises, the same again."""
    try:
        result = function()
    except Exception as error:
        raised = error

        def again() -> _T:
            raise raised

        return again
    return lambda: result


class BfrtDevice(P4RuntimeDevice):
    """A Tofino, or its model, whose program the SDE has loaded. See
    :class:`ina.testing.device.Device`."""

    def __init__(
        self,
        name: str,
        address: str,
        device_id: int,
        wire: Wire,
        program: str = "",
        *,
        patience_s: float = 10.0,
    ) -> None:
        """``wire`` is open already and stays its owner's."""
        super().__init__(name, address, device_id, wire, cpu_port=False, patience_s=patience_s)
        self._program_name = program

    def _connect(self) -> ControlPlane:
        return BfrtClient(self._address, self._device_id, self._program_name)
