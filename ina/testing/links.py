"""Cables of virtual Ethernet between a switch and us, in a namespace that dies with them."""

from __future__ import annotations

import contextlib
import os
import uuid
from pathlib import Path
from types import TracebackType

from ina import netns
from ina.errors import MissingToolError
from ina.netns import End, NetnsError, ip_batch
from ina.testing.wire import SocketWire

MTU_BYTES = 9500
_PREFIX = "ina-links-"


class Links:
    """``count`` cables, numbered from 1: the switch holds one end of each, :attr:`wire` the other.

    Our ends are in a namespace of their own. The switch's ends are there too, or, with
    ``switch_outside``, in the namespace of this process. A context manager.
    """

    def __init__(
        self, count: int, *, switch_outside: bool = False, mtu_bytes: int = MTU_BYTES
    ) -> None:
        """``mtu_bytes``: of both ends."""
        tag = uuid.uuid4().hex[:6]
        self.namespace = f"{_PREFIX}{os.getpid()}-{tag}"
        self._outside, self._mtu_bytes = switch_outside, mtu_bytes
        self.switch_ends = {port: f"sw{tag}p{port}" for port in range(1, count + 1)}
        """Port number to the interface that the switch shall open."""
        self.host_ends = {port: f"eth{port}" for port in self.switch_ends}
        """The same of ours, in :attr:`namespace`."""
        self.wire = SocketWire(self.host_ends, self.namespace)

    def __enter__(self) -> Links:
        why = cannot_link()
        if why:
            raise MissingToolError(why)
        remove_orphans()
        try:
            netns.add(self.namespace)
            # No address of its own, no neighbours: nothing but our frames is on these cables.
            quiet = f"mtu {self._mtu_bytes} addrgenmode none arp off multicast off up"
            switch_space = None if self._outside else self.namespace
            pairs = [
                (End(switch_space, self.switch_ends[port]), End(self.namespace, host_end))
                for port, host_end in self.host_ends.items()
            ]
            netns.add_pairs(pairs)
            ends = [end for pair in pairs for end in pair]
            for space in {end.space for end in ends}:
                names = [end.interface for end in ends if end.space == space]
                ip_batch(space, (f"link set {name} {quiet}" for name in names))
            for end in self.host_ends.values():
                netns.receive_in_bursts(End(self.namespace, end))
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
            with contextlib.suppress(NetnsError):
                ip_batch(None, (f"link del {end}" for end in self.switch_ends.values()), force=True)
        with contextlib.suppress(NetnsError):
            netns.delete(self.namespace)


def remove_orphans() -> None:
    """Removes what a process has left that was killed: its name says which process it was."""
    for path in netns.NETNS_DIR.glob(f"{_PREFIX}*"):
        pid = path.name.removeprefix(_PREFIX).partition("-")[0]
        if not Path("/proc", pid).exists():
            with contextlib.suppress(NetnsError):  # another process removes it, too
                netns.delete(path.name)


def cannot_link() -> str:
    """Why this process cannot make virtual cables; empty: it can."""
    if why := netns.why_not():
        return f"virtual Ethernet {why}"
    probe = f"{_PREFIX}{os.getpid()}-{uuid.uuid4().hex[:6]}"
    try:
        netns.add(probe)
        netns.delete(probe)
    except NetnsError as error:
        return f"cannot make network namespaces: {error}"
    return ""
