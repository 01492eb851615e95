"""Cables of virtual Ethernet between a switch and us, in a namespace that dies with them."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from pathlib import Path
from types import TracebackType

from ina.errors import MissingToolError
from ina.testing.errors import DeviceError
from ina.testing.wire import SocketWire

MTU_BYTES = 9500
_PREFIX = "ina-links-"
_FOLDER = Path("/run/netns")
_IP_DEADLINE_S = 120.0


class Links:
    """``count`` cables, numbered from 1: the switch holds one end of each, :attr:`wire` the other.

    Our ends are in a namespace of their own. The switch's ends are there too, or, with
    ``switch_outside``, in the namespace of this process. A context manager.
    """

    def __init__(self, count: int, *, switch_outside: bool = False) -> None:
        tag = uuid.uuid4().hex[:6]
        self.namespace = f"{_PREFIX}{os.getpid()}-{tag}"
        self._outside = switch_outside
        self.switch_ends = {port: f"sw{tag}p{port}" for port in range(1, count + 1)}
        """Port number to the interface that the switch shall open."""
        self._host_ends = {port: f"eth{port}" for port in self.switch_ends}
        self.wire = SocketWire(self._host_ends, self.namespace)

    def __enter__(self) -> Links:
        why = cannot_link()
        if why:
            raise MissingToolError(why)
        remove_orphans()
        try:
            _ip(["netns add " + self.namespace])
            # No address of its own, no neighbours: nothing but our frames is on these cables.
            quiet = f"mtu {MTU_BYTES} addrgenmode none arp off multicast off up"
            place = "" if self._outside else f"netns {self.namespace} "
            inner, outer = [], []
            for port, switch_end in self.switch_ends.items():
                host_end = self._host_ends[port]
                outer.append(
                    f"link add name {switch_end} {place}type veth "
                    f"peer name {host_end} netns {self.namespace}"
                )
                inner.append(f"link set {host_end} {quiet}")
                (outer if self._outside else inner).append(f"link set {switch_end} {quiet}")
            _ip(outer)
            _ip(inner, self.namespace)
            self.wire.__enter__()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wire.__exit__()
        # A pair dies with the namespace of either end, but only after a while.
        if self._outside:
            with contextlib.suppress(DeviceError):
                _ip([f"link del {end}" for end in self.switch_ends.values()], force=True)
        with contextlib.suppress(DeviceError):
            _ip([f"netns del {self.namespace}"])


def remove_orphans() -> None:
    """Removes what a process has left that was killed: its name says which process it was."""
    for path in _FOLDER.glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", pid).exists():
            with contextlib.suppress(DeviceError):  # another process removes it, too
                _ip([f"netns del {path.name}"])


def cannot_link() -> str:
    """Why this process cannot make virtual cables; empty: it can."""
    if os.geteuid() != 0:
        return "virtual Ethernet needs root"
    if shutil.which("ip") is None:
        return "virtual Ethernet needs the ip command (Debian package iproute2)"
    probe = f"{_PREFIX}{os.getpid()}-{uuid.uuid4().hex[:6]}"
    try:
        _ip([f"netns add {probe}", f"netns del {probe}"])
    except DeviceError as error:
        return f"cannot make network namespaces: {error}"
    return ""


def _ip(commands: list[str], namespace: str | None = None, *, force: bool = False) -> None:
    where = [] if namespace is None else ["-n", namespace]
    try:
        done = subprocess.run(
            ["ip", *where, *(["-force"] if force else []), "-batch", "-"],
            input="\n".join(commands) + "\n",
            capture_output=True,
            text=True,
            timeout=_IP_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DeviceError(f"ip took more than {_IP_DEADLINE_S:g} s") from None
    if done.returncode:
        raise DeviceError("ip: " + " ".join(done.stderr.split()))
