"""Programs, maps and links under names in the BPF file system, where they outlive processes."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from pathlib import Path

from ina.errors import UnavailableError
from ina.switch.xdp.libbpf import Map, Programs, XdpError, library
from ina.switch.xdp.links import Attached

_MOUNTS = Path("/proc/self/mountinfo")
_INFO_BYTES = 256
_PROGRAMS, _MAPS, _PORT = "programs", "maps", "port-"


class PinError(UnavailableError):
    """What is pinned, or the place for it, is not as it has to be; the message says what to do."""


def bpf_file_system() -> Path:
    """$INA_BPFFS, or where systemd mounts it. Raises :class:`PinError`: none is mounted there."""
    path = Path(os.environ.get("INA_BPFFS") or "/sys/fs/bpf")
    for line in _MOUNTS.read_text().splitlines():
        fields, _, kind = line.partition(" - ")
        mounted = Path(fields.split()[4])
        if kind.startswith("bpf ") and (mounted == path or mounted in path.parents):
            return path
    raise PinError(f"no BPF file system is mounted at {path}: mount -t bpf bpf {path}")


def folder_of(name: str) -> Path:
    """Of a switch's pins. Raises :class:`PinError`."""
    return bpf_file_system() / "ina" / name


class PinnedPrograms(Programs):
    """Those that a former process has pinned."""

    def __init__(self, folder: Path) -> None:
        """Raises :class:`XdpError`."""
        self._open: list[int] = []
        try:
            programs = {it.name: self._get(it) for it in sorted((folder / _PROGRAMS).iterdir())}
            maps = [
                _map(it.name.replace("-", "."), self._get(it))
                for it in sorted((folder / _MAPS).iterdir())
            ]
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise XdpError(f"{folder}: {error.strerror}") from None
            raise
        super().__init__(programs, maps)

    def _get(self, path: Path) -> int:
        descriptor = got(path)
        self._open.append(descriptor)
        return descriptor

    def close(self) -> None:
        """See :meth:`Programs.close`."""
        opened, self._open = self._open, []
        for descriptor in opened:
            os.close(descriptor)


def pin(programs: Programs, folder: Path) -> None:
    """They stay until the folder is removed. Raises :class:`XdpError`."""
    found = {f"{_PROGRAMS}/{name}": it for name, it in programs.programs.items()}
    # The file system keeps names with dots to itself, and no name of C has a hyphen.
    found |= {
        f"{_MAPS}/{it.name.replace('.', '-')}": it.descriptor for it in programs.maps.values()
    }
    try:
        for part in (_PROGRAMS, _MAPS):
            (folder / part).mkdir(parents=True)
    except OSError as error:
        raise XdpError(f"{folder}: {error.strerror}") from None
    for name, descriptor in found.items():
        code = library().bpf_obj_pin(descriptor, str(folder / name).encode())
        if code:
            raise XdpError(f"{folder / name}: {os.strerror(-code)}")


def got(path: os.PathLike[str]) -> int:
    """The descriptor of what is pinned there. Raises :class:`XdpError`."""
    descriptor = int(library().bpf_obj_get(str(path).encode()))
    if descriptor < 0:
        raise XdpError(f"{path}: {os.strerror(-descriptor)}")
    return descriptor


def number_of(descriptor: int) -> int:
    """The kernel's, of a program or a map: no other has the same while it is there."""
    return int(struct.unpack_from("<I", _info(descriptor), 4)[0])


def link_path(folder: Path, port: int) -> Path:
    """Of the link of a port."""
    return folder / f"{_PORT}{port}"


def links(folder: Path) -> dict[int, Path]:
    """By port, those that are pinned."""
    found = sorted(folder.glob(f"{_PORT}*")) if folder.exists() else []
    return {int(path.name.removeprefix(_PORT)): path for path in found}


def pinned_link(path: Path) -> Attached | None:
    """None: there is none. Raises :class:`XdpError`."""
    return Attached(got(path)) if path.exists() else None


def remove_link(path: Path) -> None:
    """Its interface does without it. Raises :class:`XdpError`."""
    attached = Attached(got(path))
    attached.detach()
    attached.close()
    path.unlink()


def remove(folder: Path) -> list[str]:
    """Links first, then programs and maps; returns what it was, as paths in it. Idempotent. Raises
    :class:`PinError`, :class:`XdpError`."""
    try:
        return _remove(folder)
    except OSError as error:
        raise PinError(f"{folder}: {error.strerror}") from None


def _remove(folder: Path) -> list[str]:
    gone = []
    for path in links(folder).values():
        remove_link(path)
        gone.append(path.name)
    for path in sorted(folder.rglob("*"), key=lambda it: -len(it.parts)) if folder.exists() else []:
        if path.is_dir():
            path.rmdir()
        else:
            path.unlink()
            gone.append(str(path.relative_to(folder)))
    with contextlib.suppress(FileNotFoundError):
        folder.rmdir()
    return gone


def _map(name: str, descriptor: int) -> Map:
    key_bytes, value_bytes = struct.unpack_from("<II", _info(descriptor), 8)
    return Map(name, descriptor, key_bytes, value_bytes)


def _info(descriptor: int) -> bytes:
    """struct bpf_prog_info or bpf_map_info."""
    room, size = ctypes.create_string_buffer(_INFO_BYTES), ctypes.c_uint32(_INFO_BYTES)
    code = library().bpf_obj_get_info_by_fd(descriptor, room, ctypes.byref(size))
    if code:
        raise XdpError(f"what is pinned: {os.strerror(-code)}")
    return room.raw
