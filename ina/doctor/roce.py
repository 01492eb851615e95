"""What transport ``roce`` needs: a library, a kernel, devices, addresses; and two queue pairs of a
device that send each other messages."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from ipaddress import IPv4Address
from pathlib import Path

from ina.doctor.finding import Finding
from ina.host.errors import TransportError
from ina.host.rdma import GID_TYPES, RdmaDevice, RdmaGid, RdmaPlace, RdmaPort, devices, is_usable
from ina.host.rdma_loopback import MESSAGES, RdmaLoopback, came_round
from ina.protocol.spec import HEADER_BYTES, ROCE_VALUES_PER_PACKET_BUILDS, VALUE_BYTES

USED_FOR = "transport roce"
USUAL_VALUES = 248
_VERBS_CLASS = Path("/sys/class/infiniband_verbs")


def examine_roce() -> Iterator[Finding]:
    """The checklist, in order; behind what makes the rest impossible nothing follows."""
    try:
        found = devices()
    except TransportError as error:
        how = f"apt install libibverbs1 ibverbs-providers: {error}"
        yield _finding("libibverbs", "", how)
        yield _kernel()
        return
    yield _finding("libibverbs", "libibverbs.so.1", "")
    yield _kernel()
    how = "the NIC's driver; without such a NIC: rdma link add rxe0 type rxe netdev INTERFACE"
    yield _finding("RDMA devices", ", ".join(device.name for device in found), how)
    for device in found:
        yield from _device(device)


def fitting(mtu_bytes: int) -> list[int]:
    """How many values a packet can have where packets carry so many bytes."""
    return [
        values
        for values in ROCE_VALUES_PER_PACKET_BUILDS
        if HEADER_BYTES + VALUE_BYTES * values <= mtu_bytes
    ]


def _finding(name: str, found: str, get: str) -> Finding:
    return Finding(name, found, USED_FOR, get, required=True)


def _kernel() -> Finding:
    found = str(_VERBS_CLASS) if _VERBS_CLASS.is_dir() else ""
    how = f"no {_VERBS_CLASS}: modprobe ib_uverbs, in a kernel with CONFIG_INFINIBAND"
    return _finding("kernel, for RDMA", found, how)


def _device(device: RdmaDevice) -> Iterator[Finding]:
    how = f"{device.trouble} (may this user write /dev/infiniband/uverbs*?)"
    yield _finding(device.name, "" if device.trouble else "opened", how)
    for port in device.ports:
        name = f"{device.name} port {port.number}"
        yield _state(name, port)
        yield _values(name, port)
        yield _addresses(name, port)
        gid = _usable(port)
        if gid is not None and port.is_active:
            yield from _messages(device.name, name, port, gid)


def _state(name: str, port: RdmaPort) -> Finding:
    if not port.is_ethernet:
        return _finding(name, "", "its link is InfiniBand's: RoCE wants Ethernet")
    return _finding(name, "active, Ethernet" if port.is_active else "", "ip link set ... up")


def _values(name: str, port: RdmaPort) -> Finding:
    fit = fitting(port.active_mtu_bytes)
    told = ", ".join(map(str, fit)) or "no"
    said = f"{port.active_mtu_bytes} of {port.max_mtu_bytes} bytes: {told} values a packet"
    how = f"{said}; raise the interface's MTU: 1200 is enough for {USUAL_VALUES}"
    return _finding(f"{name}, MTU", said if USUAL_VALUES in fit else "", how)


def _addresses(name: str, port: RdmaPort) -> Finding:
    told = ", ".join(f"{gid.index}: {_text(gid)}" for gid in port.gids)
    how = f"no IPv4 address of type RoCEv2: give its interface one ({told or 'it has none'})"
    return _finding(f"{name}, GIDs", told if _usable(port) else "", how)


def _text(gid: RdmaGid) -> str:
    address = str(IPv4Address(gid.ipv4)) if gid.ipv4 else gid.address
    return f"{address} {GID_TYPES.get(gid.type, 'InfiniBand')}"


def _usable(port: RdmaPort) -> RdmaGid | None:
    return next(filter(is_usable, port.gids), None)


def _messages(device: str, name: str, port: RdmaPort, gid: RdmaGid) -> Iterator[Finding]:
    """Between two of its queue pairs, by way of the device alone."""
    place = RdmaPlace(device, port.number, gid.index, port.active_mtu_bytes)
    with contextlib.ExitStack() as stack:
        try:
            pair = stack.enter_context(RdmaLoopback(place, gid.ipv4))
        except TransportError as error:
            yield _finding(f"{name}, queue pairs", "", str(error))
            return
        yield _finding(f"{name}, queue pairs", ", ".join(map(hex, pair.numbers)), "")
        try:
            pair.connect()
        except TransportError as error:
            yield _finding(f"{name}, loopback", "", str(error))
            return
        came = pair.came()
        yield _finding(
            f"{name}, loopback",
            f"{came} of {MESSAGES} messages" if came == MESSAGES else "",
            f"{came} of {MESSAGES} messages of {place.active_mtu_bytes} bytes came",
        )
        came = pair.came(jump=True)
        yield _finding(
            f"{name}, PSN jump",
            f"{came} of {MESSAGES} messages" if came == MESSAGES else "",
            f"{came} of {MESSAGES} messages came whose numbers began elsewhere",
        )
    yield _reliable(f"{name}, reliable connection", place, gid)


def _reliable(name: str, place: RdmaPlace, gid: RdmaGid) -> Finding:
    """For rings of mode transparent."""
    try:
        came = came_round(place, gid.ipv4)
    except TransportError as error:
        return _finding(name, "", str(error))
    found = f"{came} of {MESSAGES} messages"
    return _finding(name, found if came == MESSAGES else "", f"{found} came")
