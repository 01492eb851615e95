"""A session with a switch for callers that are not asynchronous: conformance tests and tools.

The sessions are those of :mod:`ina.tables`, which the controller has, too. Each runs in an event
loop of its own (in a thread, where something may come by itself), and each call waits for its end.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Protocol, TypeVar

from finsy.proto import p4r

from ina.tables.bfrt.sde import load_client
from ina.tables.bfrt.session import BfrtSession
from ina.tables.entities import ProgramFiles
from ina.tables.errors import SwitchError
from ina.tables.grpc_wire import GrpcWire, RuntimeClient
from ina.tables.p4runtime import P4RuntimeSession
from ina.tables.session import SwitchSession
from ina.tables.values import AnyItem, Count, CounterRef, Group
from ina.testing.errors import DeviceError

CONNECT_S = 20.0
STOP_S = 20.0
BFRT_CLIENT_ID = 99
"""Unlike a controller's, which are small."""
_BATCH = 256
"""Items of one message: all of a large case together are more than servers take."""
_OUTBIDS = 3
"""Somebody may be primary with a higher id, and be there still: so often he is outbid."""

_T = TypeVar("_T")


class DeviceSession(SwitchSession, Protocol):
    """Of a device under test."""

    async def set_pipeline(self, *, anew: bool = False) -> bool:
        """``anew``: everything is as at power-on, whatever ran."""
        ...


class ControlPlane:
    """How a device's state is written and read. From construction to :meth:`close`.

    Every call raises :class:`DeviceError`, in one line, and has the session's deadlines.
    """

    def __init__(self, *, has_thread: bool = True) -> None:
        """Without a thread, nothing happens between calls, which all come from one thread."""
        self.packet_ins: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        """With their controller header in front as the program emits it."""
        self._loop = asyncio.new_event_loop()
        self._thread: threading.Thread | None = None
        if has_thread:
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="ina-control-plane", daemon=True
            )
            self._thread.start()
        try:
            self._session = self._wait(self._connect())
        except BaseException:
            self._stop()
            raise

    def close(self) -> None:
        """Ends the session; the device keeps its state."""
        try:
            self._wait(self._session.close())
        finally:
            self._stop()

    def set_pipeline(self, program: ProgramFiles) -> None:
        """Everything is as at power-on, with this program, also where it runs already."""
        self._wait(self._session.set_pipeline(anew=True))

    def insert(self, items: Sequence[AnyItem]) -> None:
        """Writes items, and sets default actions."""
        for batch in _batches(items):
            self._wait(self._session.insert(batch))

    def delete(self, items: Sequence[AnyItem]) -> None:
        """Takes off what is there; default actions go back to the program's own."""
        for batch in _batches(items):
            self._wait(self._session.delete(batch))

    def modify(self, groups: Sequence[Group]) -> None:
        """Gives groups that are there other copies."""
        self._wait(self._session.modify(groups))

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """Reads counters."""
        found = (self._wait(self._session.read_counts(batch)) for batch in _batches(refs))
        return list(itertools.chain.from_iterable(found))

    def packet_out(self, packet: bytes, egress_port: int) -> None:
        """Sends a frame out of a port, past the tables."""
        raise DeviceError(f"{self._session.address}: its protocol sends no packets")

    async def _connect(self) -> DeviceSession:
        raise NotImplementedError

    def _wait(self, work: Coroutine[Any, Any, _T]) -> _T:
        try:
            if self._thread is None:
                return self._loop.run_until_complete(work)
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()
        except SwitchError as error:
            raise DeviceError(str(error)) from None

    def _stop(self) -> None:
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(STOP_S)
        if self._thread is None or not self._thread.is_alive():
            self._loop.close()


class P4RuntimeClient(ControlPlane):
    """The primary client of one P4Runtime device."""

    def __init__(
        self,
        address: str,
        device_id: int,
        *,
        connect_s: float = CONNECT_S,
        client: Callable[[], RuntimeClient] | None = None,
    ) -> None:
        """Connects to ``host:port`` or ``unix:PATH`` and becomes primary. Raises DeviceError.

        ``client``: what carries the messages of a connection within this process; None: gRPC.
        """
        self._address, self._device_id, self._connect_s = address, device_id, connect_s
        self._client = client
        self._wire: GrpcWire
        super().__init__(has_thread=client is None)

    def set_pipeline(self, program: ProgramFiles) -> None:
        """Loads the program, also where it runs already: all state is as at power-on."""
        self._wire.program = program
        super().set_pipeline(program)

    def packet_out(self, packet: bytes, egress_port: int) -> None:
        """Sends a frame out of a port, past the tables."""
        self._wait(self._wire.packet_out(packet, egress_port))

    async def _connect(self) -> DeviceSession:
        election_id = 1
        for _ in range(_OUTBIDS):
            session = await P4RuntimeSession.over(
                self._new_wire,
                self._address,
                self._device_id,
                election_id=election_id,
                timeout_s=self._connect_s,
                standby=True,
            )
            if session.is_primary:
                return session
            election_id = max(election_id, session.primary_id) + 1
            await session.close()
        raise SwitchError(f"{self._address}: another client stays primary")

    def _new_wire(self) -> GrpcWire:
        self._wire = GrpcWire(
            self._address, self._device_id, None, client=self._client and self._client()
        )
        self._wire.on_packet = lambda packet: self.packet_ins.put(_with_header(packet))
        return self._wire


class BfrtClient(ControlPlane):
    """Has one program of one BFRuntime device, which the SDE has loaded. It has no packets."""

    def __init__(self, address: str, device_id: int, program: str = "") -> None:
        """``program``: its name in the SDE; empty: the one that runs. Raises DeviceError,
        :class:`~ina.errors.MissingToolError` (no SDE)."""
        self._place = (address, device_id, f"BFRuntime device {device_id} at {address}")
        self._program = program
        super().__init__()

    async def _connect(self) -> DeviceSession:
        session = BfrtSession(
            load_client(), *self._place, client_id=BFRT_CLIENT_ID, program=self._program
        )
        await session.connect()
        return session


def _batches(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


def _with_header(packet: p4r.PacketIn) -> bytes:
    """The ingress port (metadata 1, 9 bits) and 7 bits of padding, in front of the frame."""
    port = next(int.from_bytes(m.value, "big") for m in packet.metadata if m.metadata_id == 1)
    return (port << 7).to_bytes(2, "big") + packet.payload
