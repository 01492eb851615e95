"""Any P4Runtime device: state through P4Runtime, frames through a :class:`~ina.testing.wire.Wire`.

A switch does not say when it has done with a frame, and frames of different ports overtake each
other on the way in. So *fences* are sent: frames that the device's own tables forward.

* Behind a frame, before one of another port: a fence that comes back to the port it was sent to.
  Whatever was sent to that port before it has passed the pipeline by then.
* Behind the last: one that is copied to every port. All that leaves a port leaves before it.

Nothing is waited for longer than ``patience_s``, and nothing is guessed from silence.
"""

from __future__ import annotations

import queue
import time
from collections.abc import Sequence
from types import TracebackType

from ina.p4 import names
from ina.tables.entities import ProgramFiles
from ina.tables.values import AnyItem, Count, CounterRef, Entry, Group
from ina.testing.control_plane import CONNECT_S, BfrtClient, ControlPlane, P4RuntimeClient
from ina.testing.device import Ability, ProgramOf, program_of_mode
from ina.testing.errors import DeviceError
from ina.testing.frames import PortFrame
from ina.testing.state import forward
from ina.testing.wire import Wire

FENCE_GROUP = 0x7FF0
_FENCE_MACS = 0x02_FE_00_00_00_00
_FENCE_ALL = _FENCE_MACS | 0xFFFF
_FENCE_SRC = 0x02_FE_FE_FE_FE_FE
_ETHERTYPE = 0x88B5  # for local experiments
_FENCE_BYTES = 60
_RUN = 16  # frames to one port without a fence: what the shortest queues hold
_PREFIX = (_FENCE_MACS >> 16).to_bytes(4, "big")


class P4RuntimeDevice:
    """See :class:`ina.testing.device.Device`."""

    def __init__(
        self,
        name: str,
        address: str,
        device_id: int,
        wire: Wire,
        *,
        cpu_port: bool = True,
        mode: str = names.DEFAULT_MODE,
        program_of: ProgramOf | None = None,
        patience_s: float = 10.0,
    ) -> None:
        """``wire`` is open already and stays its owner's. ``program_of``: what is loaded; None: the
        checked-in program of ``mode``."""
        self._program_of = program_of or program_of_mode(mode)
        self.name = name
        self.mode = mode
        growth = {Ability.GROWTH, Ability.SOME_GROWTH}
        self.abilities = frozenset({*growth, *([Ability.CPU_PORT] if cpu_port else ())})
        self.ports = wire.ports
        self.frame_bytes = wire.frame_bytes
        self._address, self._device_id = address, device_id
        self._wire = wire
        self._patience_s = patience_s
        self._client: ControlPlane | None = None
        self._serial = 0
        self._arrived: list[PortFrame] = []

    def __enter__(self) -> P4RuntimeDevice:
        self._client = self._connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connect(self) -> ControlPlane:
        connect_s = min(self._patience_s, CONNECT_S)
        return P4RuntimeClient(self._address, self._device_id, connect_s=connect_s)

    def reset(self, values: int) -> None:
        """Loads its program anew, and the fences' entries."""
        self.client.set_pipeline(self._program_of(values))
        self.client.insert(self._fences())
        self._wire.receive(0)

    def insert(self, items: Sequence[AnyItem]) -> None:
        """Writes entries, default actions and groups, in order."""
        self.client.insert(items)

    def delete(self, items: Sequence[AnyItem]) -> None:
        """Takes them off again."""
        self.client.delete(items)

    def modify(self, groups: Sequence[Group]) -> None:
        """Gives groups other copies, in order."""
        self.client.modify(groups)

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """Reads counters."""
        return self.client.counts(refs)

    def process(self, frames: Sequence[PortFrame]) -> list[PortFrame]:
        """Sends frames in one after the other. Raises DeviceError: a fence did not come back."""
        if not frames:
            return []
        run = 0
        before: int | None = None
        for port, data in frames:
            if before is not None and (port != before or run == _RUN):
                self._fence_ingress(before)
                run = 0
            self._send(port, data)
            before, run = port, run + 1
        assert before is not None
        self._fence_ingress(before)
        self._fence_all()
        arrived, self._arrived = self._arrived, []
        return arrived

    def load(self, program: ProgramFiles) -> None:
        """Loads any program; use :meth:`process_counted` then: it forwards no fences."""
        self.client.set_pipeline(program)
        self._wire.receive(0)

    def process_counted(
        self, port: int, frames: Sequence[tuple[bytes, int]], quiet_s: float = 0.3
    ) -> list[PortFrame]:
        """Sends frames to one port, each with how many frames are expected because of it.

        A switch takes the frames of one port in order. Waits for those that are expected, and at
        the end for ``quiet_s`` for one more than that.
        """
        arrived: list[PortFrame] = []
        expected = 0
        until = time.monotonic() + self._patience_s
        for index, (data, count) in enumerate(frames):
            self._send(port, data)
            expected += count
            while index % _RUN == _RUN - 1 and len(arrived) < expected:
                left_s = until - time.monotonic()
                if left_s <= 0:
                    return arrived
                arrived += self._wire.receive(left_s)
        while more := self._wire.receive(quiet_s):
            arrived += more
        return arrived

    @property
    def client(self) -> ControlPlane:
        """The control plane; raises DeviceError before the device is entered."""
        if self._client is None:
            raise DeviceError(f"{self.name} is not started")
        return self._client

    def _send(self, port: int, data: bytes) -> None:
        if port != names.CPU_PORT:
            self._wire.send(port, data)
        elif len(data) < 2:
            raise DeviceError(f"a packet-out needs its 2-byte header, this has {len(data)} bytes")
        else:
            self.client.packet_out(data[2:], int.from_bytes(data[:2], "big") >> 7)

    def _fences(self) -> list[AnyItem]:
        everywhere = [(port, 0) for port in self.ports]  # instance 0 also goes back to its port
        if Ability.CPU_PORT in self.abilities:
            everywhere.append((names.CPU_PORT, 0))
        return [
            Group(FENCE_GROUP, tuple(everywhere)),
            *(forward(_FENCE_MACS | port, port) for port in self.ports),
            Entry(names.DMAC, (("dst_mac", _FENCE_ALL),), names.FLOOD, (("group", FENCE_GROUP),)),
        ]

    def _fence_ingress(self, port: int) -> None:
        """Everything sent to this port has passed the pipeline."""
        back = self.ports[0] if port == names.CPU_PORT else port
        fence = self._fence(_FENCE_MACS | back)
        if port == names.CPU_PORT:
            self.client.packet_out(fence, back)
        else:
            self._wire.send(port, fence)
        self._await({back}, fence)

    def _fence_all(self) -> None:
        """Everything that leaves any port has left."""
        fence = self._fence(_FENCE_ALL)
        self._wire.send(self.ports[0], fence)
        self._await(set(self.ports), fence)
        if Ability.CPU_PORT in self.abilities:
            self._await_packet_in(fence)

    def _fence(self, mac: int) -> bytes:
        self._serial += 1
        head = mac.to_bytes(6, "big") + _FENCE_SRC.to_bytes(6, "big")
        return (head + _ETHERTYPE.to_bytes(2, "big") + self._serial.to_bytes(8, "big")).ljust(
            _FENCE_BYTES, b"\0"
        )

    def _await(self, ports: set[int], fence: bytes) -> None:
        until = time.monotonic() + self._patience_s
        while ports:
            left_s = until - time.monotonic()
            if left_s <= 0:
                missing = ", ".join(map(str, sorted(ports)))
                raise DeviceError(
                    f"{self.name}: no fence from port {missing} within {self._patience_s:g} s: "
                    "the switch has stopped, or its ports are not wired as the port map says"
                )
            for port, data in self._wire.receive(left_s):
                if data == fence:
                    ports.discard(port)
                elif not data.startswith(_PREFIX):
                    self._arrived.append((port, data))

    def _await_packet_in(self, fence: bytes) -> None:
        while True:
            try:
                packet = self.client.packet_ins.get(timeout=self._patience_s)
            except queue.Empty:
                raise DeviceError(
                    f"{self.name}: no packet-in within {self._patience_s:g} s"
                ) from None
            if packet[2:] == fence:
                return
            self._arrived.append((names.CPU_PORT, packet))


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
