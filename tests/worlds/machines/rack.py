"""Machines with rxe at the ports of a soft switch, and a controller: in a network namespace.

A machine's eth0 is a cable to the switch, an interface of the namespace at which the switch has an
AF_PACKET port; its eth1 is QEMU's own network, by which it reaches the controller.
"""

from __future__ import annotations

import contextlib
import ctypes.util
import functools
import json
import shlex
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ina import modes, netns
from ina.netns import NetnsError, ip, within
from tests.lines import ROOT
from tests.worlds.machines import kernel as kernels
from tests.worlds.machines.kernel import Kernel
from tests.worlds.machines.machine import Machine, machine
from tests.worlds.machines.worker import Orders

SWITCH, SWITCH_MAC = "10.78.0.254", "02:00:00:00:00:fe"
CONTROLLER_PORT, GRPC_PORT = 17700, 9559
MODULES = ("crc32_generic", "ib_uverbs", "rdma_rxe")
_PROVIDERS = Path("/usr/lib")
_STOP_S = 30.0
_ALL = 3  # ETH_P_ALL


def why_not() -> str:
    """Why there can be none here; empty: there can, if the kernel's package can be had."""
    if why := kernels.why_not() or netns.why_not(also=("rdma",)):
        return why
    if ctypes.util.find_library("ibverbs") is None:
        return "needs libibverbs (libibverbs1)"
    if not any(_PROVIDERS.glob("*/libibverbs/librxe-*.so")):
        return "needs libibverbs' part for rxe (ibverbs-providers)"
    return ""


def address(number: int) -> str:
    """Of machine ``number``, from 1, which is at the switch's port of that number."""
    return f"10.78.0.{number}"


def ring_address(number: int) -> str:
    """That the machine has besides, where workers send to each other."""
    return f"10.128.32.{number}"


def mac(number: int) -> str:
    """Of its eth0."""
    return f"02:00:0a:4e:00:{number:02x}"


@dataclass
class Rack:
    """What runs."""

    space: str
    folder: Path
    kernel: Kernel
    _start: Callable[[], contextlib.AbstractContextManager[subprocess.Popen[str]]]
    _switches: contextlib.ExitStack
    switch: subprocess.Popen[str]
    mtu_bytes: int
    mode: str
    machines: int

    def reboot(self) -> None:
        """The switch has no power for a moment, and begins anew at the same ports."""
        self.switch.kill()
        self.switch.wait(_STOP_S)
        self.switch = self._switches.enter_context(self._start())

    def send(self, number: int, frames: Sequence[bytes]) -> None:
        """To machine ``number``, past the switch."""
        with (
            netns.inside(self.space),
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as sock,
        ):
            sock.bind((interface(number), 0))
            for frame in frames:
                sock.send(frame)

    @contextlib.contextmanager
    def captured(self, number: int) -> Iterator[list[bytes]]:
        """Frames of machine ``number``'s cable, both ways; whole once the block has ended."""
        frames: list[bytes] = []
        with (
            netns.inside(self.space),
            socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL)) as sock,
        ):
            sock.bind((interface(number), _ALL))
            sock.settimeout(0.1)
            is_over = threading.Event()

            def take() -> None:
                while not is_over.is_set():
                    with contextlib.suppress(TimeoutError):
                        frames.append(sock.recv(65536))

            thread = threading.Thread(target=take)
            thread.start()
            try:
                yield frames
            finally:
                is_over.set()
                thread.join()

    @contextlib.contextmanager
    def worker(self, number: int, transport: str, **orders: Any) -> Iterator[Machine]:
        """Machine ``number`` as rank ``number - 1``."""
        is_ring = _is_ring(self.mode)
        host = None if is_ring else address(number)
        told = Orders(
            f"10.0.2.2:{CONTROLLER_PORT}", number - 1, host, transport, self.mode, **orders
        )
        command = f"{shlex.quote(sys.executable)} -m tests.worlds.machines.worker"
        script = "\n".join(
            (
                "ip link set lo up",
                f"ip address add {address(number)}/24 dev eth0",
                f"ip link set eth0 mtu {self.mtu_bytes} up",
                f"ip neighbour add {SWITCH} lladdr {SWITCH_MAC} dev eth0 nud permanent",
                *(self._ring_lines(number) if is_ring else ()),
                "ip address add 10.0.2.15/24 dev eth1",
                "ip link set eth1 up",
                "rdma link add rxe0 type rxe netdev eth0",
                f"cd {shlex.quote(str(ROOT))}",
                f"exec {command} {shlex.quote(json.dumps(asdict(told)))}",
            )
        )
        folder = self.folder / f"machine{number}"
        folder.mkdir()
        cable = f"tap,id=data,ifname={interface(number)},script=no,downscript=no"
        devices = (
            *("-netdev", cable, "-device", f"virtio-net-pci,netdev=data,mac={mac(number)}"),
            *("-netdev", "user,id=own", "-device", "virtio-net-pci,netdev=own"),
        )
        with machine(
            self.kernel,
            folder,
            script,
            modules=MODULES,
            devices=devices,
            within=within(self.space, []),
        ) as running:
            yield running

    def _ring_lines(self, number: int) -> Iterator[str]:
        yield f"ip address add {ring_address(number)}/18 dev eth0"
        for other in range(1, self.machines + 1):
            if other != number:
                yield (
                    f"ip neighbour add {ring_address(other)} lladdr {mac(other)} dev eth0"
                    " nud permanent"
                )


def _is_ring(mode: str) -> bool:
    return modes.of(mode).framing == "ring"


def interface(number: int) -> str:
    """The namespace's end of machine ``number``'s cable."""
    return f"vm{number}"


@contextlib.contextmanager
def rack(
    kernel: Kernel,
    folder: Path,
    machines: int,
    *,
    mode: str,
    values: int,
    loss: float = 0.0,
    mtu_bytes: int = 1500,
) -> Iterator[Rack]:
    """A switch with so many ports, its controller, and no machine yet."""
    space = f"ina{uuid.uuid4().hex[:6]}vm"
    with contextlib.ExitStack() as stack:
        netns.add_host(space)
        stack.callback(_delete, space)
        for number in range(1, machines + 1):
            ip(space, "tuntap", "add", "dev", interface(number), "mode", "tap")
            ip(space, "link", "set", interface(number), "mtu", str(mtu_bytes), "up")
        ports = [f"--port={n}=if:{interface(n)}" for n in range(1, machines + 1)]
        options = ("--grpc-addr", f"127.0.0.1:{GRPC_PORT}", "--loss-rate", str(loss), *ports)
        start = functools.partial(_running, space, "switch", "--json", *options)
        file = folder / "controller.toml"
        file.write_text(_config(machines, mode, values))
        switches = stack.enter_context(contextlib.ExitStack())
        switch = switches.enter_context(start())
        stack.enter_context(_running(space, "controller", "run", str(file), "--json"))
        yield Rack(space, folder, kernel, start, switches, switch, mtu_bytes, mode, machines)


def _config(machines: int, mode: str, values: int) -> str:
    is_ring = _is_ring(mode)
    at = ring_address if is_ring else address
    hosts = (
        f'[[host]]\naddress = "{at(n)}"\nport = {n}\nmac = "{mac(n)}"\n'
        for n in range(1, machines + 1)
    )
    return "\n".join(
        (
            f'listen = "127.0.0.1:{CONTROLLER_PORT}"',
            "[switch]",
            f'grpc_addr = "127.0.0.1:{GRPC_PORT}"',
            f'data_host = "{SWITCH}"',
            f"values = {values}",
            f'mode = "{mode}"',
            *(['rings = "10.128.0.0/18"'] if is_ring else []),
            "[jobs]",
            f'mode = "{mode}"',
            *hosts,
        )
    )


@contextlib.contextmanager
def _running(space: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command of ina's, from its first line on."""
    process = subprocess.Popen(
        within(space, [sys.executable, "-m", "ina", *arguments]),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline(), arguments
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=_STOP_S)


def _delete(space: str) -> None:
    with contextlib.suppress(NetnsError):
        netns.delete(space)
