"""Network namespaces, and pairs of virtual Ethernet between them: all that calls ``ip`` and ``tc``.

Names are the callers'. What they make ends with :func:`delete`: interfaces end with a namespace of
either end, though a moment later.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ina.errors import UnavailableError

NETNS_DIR = Path("/run/netns")
COMMAND_TIMEOUT_S = 30.0
BATCH_TIMEOUT_S = 120.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CLONE_NEWNET = 0x40000000
_SIOCETHTOOL = 0x8946
SET_TX_CHECKSUMS, SET_TSO, SET_GSO, SET_GRO = 0x17, 0x1F, 0x24, 0x2C
"""ETHTOOL_STXCSUM, _STSO, _SGSO, _SGRO."""


class NetnsError(UnavailableError):
    """A namespace or an interface could not be made, entered or removed; the message says which."""


class End(NamedTuple):
    """One end of a pair; ``space`` None: in this process's own namespace."""

    space: str | None
    interface: str


def why_not(*, also: Sequence[str] = ()) -> str:
    """Why this process can make no namespaces, empty: it can; ``also``: commands beside ``ip``."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    for tool in ("ip", *also):
        if shutil.which(tool) is None:
            return f"needs the {tool} command (Debian package iproute2)"
    return ""


def command(*arguments: str) -> str:
    """Runs ``ip`` or ``tc``; returns what it prints. Raises :class:`NetnsError`."""
    return _run(arguments, COMMAND_TIMEOUT_S)


def ip(space: str | None, *arguments: str) -> str:
    """``ip`` within a namespace. Raises :class:`NetnsError`."""
    return command("ip", *_within(space), *arguments)


def ip_batch(space: str | None, lines: Iterable[str], *, force: bool = False) -> None:
    """Several ``ip`` commands by one process; ``force``: also those behind one that fails.

    Raises :class:`NetnsError`.
    """
    how = ["-force"] if force else []
    arguments = ("ip", *_within(space), *how, "-batch", "-")
    _run(arguments, BATCH_TIMEOUT_S, "".join(f"{line}\n" for line in lines))


def within(space: str, arguments: Sequence[str]) -> list[str]:
    """The command line that runs ``arguments`` in a namespace."""
    return ["ip", "netns", "exec", space, *arguments]


def add(space: str) -> None:
    """Makes a namespace. Raises :class:`NetnsError`."""
    with signals_later():
        command("ip", "netns", "add", space)


def delete(space: str) -> None:
    """Raises :class:`NetnsError`. What runs in it keeps it alive, without a name."""
    command("ip", "netns", "del", space)


def add_host(space: str) -> None:
    """A namespace in which programs run: its loopback is up; no neighbour discovery on links."""
    add(space)
    with inside(space):
        for scope in ("all", "default"):
            key = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
            if key.exists():
                key.write_text("1")
    ip(space, "link", "set", "lo", "up")


def add_pairs(pairs: Iterable[tuple[End, End]]) -> None:
    """Makes pairs of virtual Ethernet, all down. Raises :class:`NetnsError`."""
    ip_batch(None, (f"link add {_end(one)} type veth peer {_end(other)}" for one, other in pairs))


def shape(end: End, rate_bit_s: float, burst_bytes: int, queue_bytes: int) -> None:
    """Gives what leaves an end a rate, by a token bucket. Raises :class:`NetnsError`.

    ``burst_bytes``: what an end that was idle lets pass at once; ``queue_bytes``: what waits, at
    most: more is dropped.
    """
    command("tc", *_within(end.space), "qdisc", "add", "dev", end.interface, "root", "tbf",
            "rate", f"{round(rate_bit_s)}bit", "burst", str(burst_bytes),
            "limit", str(queue_bytes))  # fmt: skip


def shaped_bytes(end: End) -> int:
    """What has left a shaped end, each packet with its own headers: an interface's own counters
    count a super-packet's (GSO) once. Raises :class:`NetnsError`."""
    said = command("tc", *_within(end.space), "-s", "-j", "qdisc", "show", "dev", end.interface)
    return sum(int(it["bytes"]) for it in json.loads(said) if it["kind"] == "tbf")


def other_end(interface: str, space: str) -> End:
    """The end in ``space`` of the pair that has ``interface`` here. Raises :class:`NetnsError`."""
    (here,) = json.loads(ip(None, "-j", "link", "show", "dev", interface))
    there = json.loads(ip(space, "-j", "link", "show"))
    for it in there:
        if it["ifindex"] == here["link_index"]:
            return End(space, it["ifname"])
    raise NetnsError(f"namespace {space}: it has not the other end of {interface}")


def drop_all(end: End) -> None:
    """From now on nothing leaves an end, whatever it had before. Raises :class:`NetnsError`."""
    command("tc", *_within(end.space), "qdisc", "replace", "dev", end.interface, "root", "pfifo",
            "limit", "0")  # fmt: skip


def receive_in_bursts(end: End) -> None:
    """Turns generic receive offload on. An end of virtual Ethernet takes frames that a program of
    the other end's has redirected to it only so (Linux' veth_xdp_xmit). Raises :class:`NetnsError`.
    """
    with inside(end.space):
        try:
            set_offload(end.interface, SET_GRO, on=True)
        except OSError as error:
            raise NetnsError(f"{end.interface}: GRO: {error.strerror}") from None


def poll_in_thread(end: End) -> None:
    """Packets that come to an end are taken by a kernel thread of its own, ``napi/``END``-``N,
    instead of by whoever's turn it is. Raises :class:`NetnsError`."""
    asked = f"echo 1 > /sys/class/net/{end.interface}/threaded"
    arguments = ["sh", "-c", asked]
    command(*(within(end.space, arguments) if end.space else arguments))


def set_offload(interface: str, command: int, *, on: bool) -> None:
    """``command``: of ethtool's that set an offload; an interface in this thread's namespace.

    Raises OSError.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        value = ctypes.create_string_buffer(struct.pack("II", command, on))
        request = struct.pack("16sP", interface.encode(), ctypes.addressof(value))
        # The kernel reads a whole struct ifreq: 40 bytes on 64-bit machines.
        fcntl.ioctl(sock, _SIOCETHTOOL, request.ljust(40, b"\0"))


def unshape(end: End) -> None:
    """Takes back :func:`shape` or :func:`drop_all`. Raises :class:`NetnsError`."""
    command("tc", *_within(end.space), "qdisc", "del", "dev", end.interface, "root")


@contextlib.contextmanager
def inside(space: str | None) -> Iterator[None]:
    """This thread in a namespace; sockets made here stay there. None: where it is.

    Raises :class:`NetnsError`: there is no such namespace.
    """
    if space is None:
        yield
        return
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            other = os.open(NETNS_DIR / space, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise NetnsError(f"namespace {space}: {error.strerror}") from None
        try:
            _setns(other)
        finally:
            os.close(other)
        try:
            yield
        finally:
            _setns(own)
    finally:
        os.close(own)


@contextlib.contextmanager
def signals_later() -> Iterator[None]:
    """Ctrl-C and its like take effect at the end of the block. Only the main thread hears them.

    ``subprocess`` forgets a child when a signal comes between its start and the return of Popen: a
    namespace that such a child makes would be made after all others were removed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    former = {
        number: signal.signal(number, lambda number, frame: came.append(number))
        for number in STOP_SIGNALS
    }
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def _within(space: str | None) -> list[str]:
    return [] if space is None else ["-n", space]


def _end(end: End) -> str:
    where = "" if end.space is None else f" netns {end.space}"
    return f"name {end.interface}{where}"


def _run(arguments: Sequence[str], timeout_s: float, text: str | None = None) -> str:
    try:
        done = subprocess.run(
            arguments, input=text, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise NetnsError(f"{' '.join(arguments)}: no end in {timeout_s:g} s") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0] or f"exit code {done.returncode}"
        raise NetnsError(f"{' '.join(arguments)}: {said}")
    return done.stdout


def _setns(fd: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise NetnsError(f"cannot enter a network namespace: {os.strerror(number)}")
