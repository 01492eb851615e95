"""Devices by name, as on a command line: model, soft, soft-veth, xdp, bmv2 or HOST:PORT[,ID]."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ina.errors import InvalidInputError
from ina.p4 import names
from ina.testing.bmv2_device import Bmv2Device
from ina.testing.device import Device
from ina.testing.model_device import ModelDevice
from ina.testing.p4runtime_device import P4RuntimeDevice
from ina.testing.soft_device import SoftDevice, SoftVethDevice, XdpDevice, XdpVethDevice
from ina.testing.wire import SocketWire

BY_NAME: dict[str, Callable[[str], Device]] = {
    "model": ModelDevice,
    "soft": SoftDevice,
    "soft-veth": SoftVethDevice,
    "xdp": XdpDevice,
    "xdp-veth": XdpVethDevice,
    "bmv2": Bmv2Device,
}


@contextmanager
def open_device(
    name: str, port_map: Sequence[str] = (), mode: str = names.DEFAULT_MODE
) -> Iterator[Device]:
    """Starts, or connects to, the device called ``name``, which runs the program of ``mode``.

    ``port_map``: for HOST:PORT, "PORT@INTERFACE" of each cable, as PTF has them. Raises
    InvalidInputError, MissingToolError, DeviceError.
    """
    if name in BY_NAME:
        if port_map:
            raise InvalidInputError(f"device {name} makes its own ports: it takes no port map")
        with BY_NAME[name](mode) as device:
            yield device
        return
    address, device_id = parse_address(name)
    with (
        SocketWire(parse_port_map(port_map)) as wire,
        P4RuntimeDevice(name, address, device_id, wire, mode=mode) as remote,
    ):
        yield remote


def parse_address(text: str) -> tuple[str, int]:
    """Reads "127.0.0.1:9559" or "127.0.0.1:9559,1": address and device id (1 if not given)."""
    address, comma, device = text.partition(",")
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or not (device.isdecimal() or not comma):
        known = ", ".join(BY_NAME)
        raise InvalidInputError(
            f"device {text!r}: expected {known}, or HOST:PORT[,DEVICE_ID] of a P4Runtime server"
        )
    return address, int(device or 1)


def parse_port_map(pairs: Sequence[str]) -> dict[int, str]:
    """Reads PTF's "0@veth0" pairs, each by itself or separated by commas."""
    found: dict[int, str] = {}
    for pair in (part for text in pairs for part in text.split(",")):
        port, at, interface = pair.partition("@")
        if not at or not port.isdecimal() or not interface:
            raise InvalidInputError(f"port map {pair!r}: expected PORT@INTERFACE, as 1@veth1")
        if int(port) in found:
            raise InvalidInputError(f"port map {pair!r}: port {port} is there twice")
        found[int(port)] = interface
    if not found:
        raise InvalidInputError("a P4Runtime device needs a port map: PORT@INTERFACE,...")
    return found
