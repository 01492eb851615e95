"""The soft switch as a device: its P4Runtime server, and its pipeline or its AF_PACKET ports."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from types import TracebackType

from ina.p4 import names
from ina.switch.p4runtime import Device as SwitchDevice
from ina.switch.pipeline import Pipeline
from ina.switch.ports import AfPacketPort
from ina.switch.server import SoftSwitch
from ina.switch.target import Target
from ina.switch.targets import default_target, xdp_target
from ina.tables.entities import ProgramFiles
from ina.tables.values import AnyItem, Count, CounterRef, Group
from ina.testing.control_plane import P4RuntimeClient
from ina.testing.device import Ability, ProgramOf, program_of_mode
from ina.testing.errors import DeviceError
from ina.testing.frames import PortFrame
from ina.testing.links import MTU_BYTES, Links
from ina.testing.p4runtime_device import P4RuntimeDevice
from ina.testing.straight import StraightClient

PORTS = 34
"""Cables of a device on interfaces: 32 workers, and two strangers."""
XDP_FRAME_BYTES = (14, 3521)
"""What an Ethernet interface gives, and a page holds beside what the kernel keeps there."""
_XDP_MTU_BYTES = 3400
"""Native XDP on veth takes a frame in one page."""
_DEVICE_ID = 1


class SoftDevice:
    """State through the soft switch's P4Runtime service; frames go straight into its pipeline.

    No gRPC, no port between us and the generated code: it runs anywhere, and queues are as deep
    as one frame's copies make them.
    """

    name = "soft"
    abilities = frozenset(Ability)
    ports = range(names.CPU_PORT + 1)
    frame_bytes = range(1 << 16)

    def __init__(
        self,
        mode: str = names.DEFAULT_MODE,
        *,
        program_of: ProgramOf | None = None,
        target: Target | None = None,
    ) -> None:
        """``program_of``: what is loaded; None: the checked-in program of ``mode``. ``target``:
        what runs it; None: compiled C."""
        self._target = target or default_target()
        self.mode = mode
        self._program_of = program_of or program_of_mode(mode)
        self._open = ExitStack()
        self._pipeline: Pipeline | None = None
        self._client: P4RuntimeClient | None = None
        self._device: SwitchDevice | None = None
        self._loaded: ProgramFiles | None = None

    def __enter__(self) -> SoftDevice:
        with ExitStack() as undo:
            device = SwitchDevice(
                _DEVICE_ID, self._target, install=self._install, inject=lambda _packet: False
            )
            undo.callback(device.close)
            self._device = device
            self._client = P4RuntimeClient(
                "in this process", _DEVICE_ID, client=lambda: StraightClient(device)
            )
            undo.callback(self._client.close)
            self._open = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()
        self._pipeline = self._client = self._device = self._loaded = None

    def reset(self, values: int) -> None:
        """Loads its program, or switches it off and on where it is loaded already."""
        program = self._program_of(values)
        if self._device is not None and program == self._loaded:
            self._device.power_on()
        else:
            self.load(program)

    def load(self, program: ProgramFiles) -> None:
        """Loads any program."""
        self._loaded = None
        self.client.set_pipeline(program)
        self._loaded = program

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
        """Hands frames to the pipeline, one after the other."""
        if self._pipeline is None:
            raise DeviceError("the soft switch has no pipeline yet: reset it first")
        return [out for port, data in frames for out in self._pipeline.process(port, data)]

    @property
    def client(self) -> P4RuntimeClient:
        """The P4Runtime client; raises DeviceError before the device is entered."""
        if self._client is None:
            raise DeviceError("the soft switch is not started")
        return self._client

    def _install(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline


class XdpDevice(SoftDevice):
    """The same with the program in this machine's kernel, which runs it on frames in memory. No
    queue is visible there."""

    name = "xdp"
    abilities = frozenset({Ability.CPU_PORT, Ability.GROWTH, Ability.SOME_GROWTH})
    frame_bytes = range(*XDP_FRAME_BYTES)

    def __init__(self, mode: str = names.DEFAULT_MODE) -> None:
        """Raises DeviceError: this machine cannot."""
        if why := cannot_run_xdp():
            raise DeviceError(f"device xdp {why}")
        super().__init__(mode, target=xdp_target())


def cannot_run_xdp() -> str:
    """Why this machine has no device xdp; empty: it has."""
    return xdp_target().trouble()


class SoftVethDevice(P4RuntimeDevice):
    """The whole soft switch: P4Runtime server, port loop, AF_PACKET on virtual cables. Root."""

    def __init__(
        self,
        mode: str = names.DEFAULT_MODE,
        *,
        ports: int = PORTS,
        target: Target | None = None,
        name: str = "soft-veth",
        mtu_bytes: int = MTU_BYTES,
        cpu_port: bool = True,
    ) -> None:
        self._links = Links(ports, switch_outside=True, mtu_bytes=mtu_bytes)
        self._target = target
        self._open = ExitStack()
        super().__init__(name, "", _DEVICE_ID, self._links.wire, mode=mode, cpu_port=cpu_port)

    def __enter__(self) -> SoftVethDevice:
        with ExitStack() as undo:
            undo.enter_context(self._links)
            ends = self._links.switch_ends.items()
            switch = SoftSwitch(
                [AfPacketPort(port, end) for port, end in ends],
                device_id=_DEVICE_ID,
                target=self._target,
            )
            undo.enter_context(switch)
            self._address = switch.grpc_addr
            super().__enter__()
            undo.callback(super().__exit__, None, None, None)
            self._open = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open.close()


class XdpVethDevice(SoftVethDevice):
    """The program in this machine's kernel, at virtual cables. Root."""

    def __init__(self, mode: str = names.DEFAULT_MODE) -> None:
        """Raises DeviceError: this machine cannot."""
        if why := cannot_run_xdp():
            raise DeviceError(f"device xdp-veth {why}")
        target = xdp_target(at_ports=True)
        # Its fences are groups, in which the kernel makes no copy for the controller.
        super().__init__(
            mode, target=target, name="xdp-veth", mtu_bytes=_XDP_MTU_BYTES, cpu_port=False
        )
        self.frame_bytes = range(self.frame_bytes.start, _XDP_MTU_BYTES + 15)
        # Virtual Ethernet's small frames end with their buffer.
        self.abilities -= {Ability.GROWTH, Ability.SOME_GROWTH}
