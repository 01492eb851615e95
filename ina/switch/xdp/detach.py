"""Takes a pinned switch out of the kernel."""

from __future__ import annotations

import contextlib
import os
import socket
from dataclasses import dataclass

from ina.switch.xdp import pins
from ina.switch.xdp.libbpf import XdpError
from ina.switch.xdp.links import Attached
from ina.switch.xdp.pin import check_name, forget, holder, lock
from ina.switch.xdp.pins import PinError


@dataclass(frozen=True)
class Detached:
    """What there was, and is no longer."""

    ports: dict[int, str]
    """The interface of each."""
    programs: int
    maps: int
    had_state: bool

    def __bool__(self) -> bool:
        return bool(self.ports or self.programs or self.maps or self.had_state)


def detach(name: str) -> Detached:
    """Interfaces do without it, and what is pinned under this name is freed. Idempotent.

    Raises InvalidInputError, :class:`PinError`: a process runs it, or it cannot be removed.
    """
    folder = pins.folder_of(check_name(name))
    held = lock(name)
    if held is None:
        raise PinError(f"pin {name}: {holder(name)} runs it: end that first")
    try:
        ports = {port: _interface(path) for port, path in pins.links(folder).items()}
        gone = pins.remove(folder)
        had_state = forget(name)
    except OSError as error:
        raise PinError(f"pin {name}: {folder}: {error.strerror}") from None
    finally:
        os.close(held)
    kinds = [path.split("/")[-2] if "/" in path else "" for path in gone]
    return Detached(ports, kinds.count("programs"), kinds.count("maps"), had_state)


def _interface(path: os.PathLike[str]) -> str:
    """Its name, in this network namespace."""
    with contextlib.suppress(XdpError):
        attached = Attached(pins.got(path))
        try:
            index = attached.index
        finally:
            attached.close()
        if index == 0:
            return "an interface that is gone"
        with contextlib.suppress(OSError):
            return socket.if_indextoname(index)
        return f"interface {index} of another namespace"
    return "an interface"
