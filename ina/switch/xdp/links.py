"""Programs at interfaces: links, which end with the last that has them open, or pinned."""

from __future__ import annotations

import ctypes
import os
import struct
from enum import Enum
from pathlib import Path

from ina.switch.xdp.libbpf import XdpError, library

_ATTACH_XDP = 37
_SKB, _DRIVER = 1 << 1, 1 << 2
_INFO_BYTES, _INTERFACE_AT = 64, 16
"""struct bpf_link_info: where that of XDP has the interface's index."""


class XdpMode(str, Enum):
    """Where an interface runs a program."""

    native = "native"
    """Its driver, on the frame as it came."""
    generic = "generic"
    """The kernel, on a copy of it in a buffer of its own (skb): any driver, and slower."""


class _Options(ctypes.Structure):
    _fields_ = (
        ("sz", ctypes.c_size_t),
        ("flags", ctypes.c_uint32),
        ("iter_info", ctypes.c_void_p),
        ("iter_info_len", ctypes.c_uint32),
        ("target_btf_id", ctypes.c_uint32),
        ("cookie", ctypes.c_uint64),
        ("padding", ctypes.c_uint64 * 4),
    )


class Attached:
    """A program that an interface runs, until :meth:`close`, or for longer where it is pinned."""

    def __init__(self, link: int) -> None:
        """``link``: its descriptor, which is closed with this."""
        self._link = link

    @classmethod
    def attach(cls, program: int, index: int, mode: XdpMode = XdpMode.native) -> Attached:
        """``index``: of the interface. Raises :class:`XdpError`."""
        flags = _DRIVER if mode is XdpMode.native else _SKB
        options = _Options(sz=ctypes.sizeof(_Options), flags=flags)
        link = library().bpf_link_create(program, index, _ATTACH_XDP, ctypes.byref(options))
        if link < 0:
            raise XdpError(os.strerror(-link))
        return cls(link)

    @property
    def index(self) -> int:
        """Of its interface; 0: there is that no longer. Raises :class:`XdpError`."""
        info = ctypes.create_string_buffer(_INFO_BYTES)
        size = ctypes.c_uint32(_INFO_BYTES)
        code = library().bpf_obj_get_info_by_fd(self._link, info, ctypes.byref(size))
        if code:
            raise XdpError(os.strerror(-code))
        (index,) = struct.unpack_from("<I", info.raw, _INTERFACE_AT)
        return int(index)

    def pin(self, path: Path) -> None:
        """It goes on without this process, until the file is removed. Raises :class:`XdpError`."""
        code = library().bpf_obj_pin(self._link, str(path).encode())
        if code:
            raise XdpError(f"{path}: {os.strerror(-code)}")

    def update(self, program: int) -> None:
        """It runs this one from now on. Raises :class:`XdpError`."""
        code = library().bpf_link_update(self._link, program, None)
        if code:
            raise XdpError(os.strerror(-code))

    def detach(self) -> None:
        """Its interface runs it no longer when this returns, also where it is pinned."""
        library().bpf_link_detach(self._link)  # fails where the interface is gone

    def close(self) -> None:
        """Idempotent."""
        link, self._link = self._link, -1
        if link >= 0:
            os.close(link)
