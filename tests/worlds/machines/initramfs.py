"""The first file system of a machine: busybox, modules, and what mounts this machine's root.

An archive of the kernel's kind (Documentation/driver-api/early-userspace/buffer-format.rst): cpio's
"new" format, any number of them one behind the other.
"""

from __future__ import annotations

import gzip
import shutil
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

_INIT = """#!/bin/busybox sh
B=/bin/busybox
$B mount -t proc proc /proc; $B mount -t sysfs sys /sys; $B mount -t devtmpfs dev /dev
for module in /modules/*; do $B insmod $module || echo "insmod $module failed"; done
$B mount -t 9p -o trans=virtio,version=9p2000.L,ro,msize=512000,cache=loose root /host
for fs in proc sys; do $B mount --bind /$fs /host/$fs; done
$B mount -t devtmpfs dev /host/dev; $B mkdir -p /host/dev/shm
$B mount -t tmpfs shm /host/dev/shm; $B mount -t tmpfs run /host/run
$B cp /guest.sh /host/run/guest.sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run TMPDIR=/run XDG_CACHE_HOME=/run
$B chroot /host /bin/sh /run/guest.sh
echo "ended $?"
$B poweroff -f
"""
_FOLDERS = ("bin", "modules", "proc", "sys", "dev", "host")


class _Entry(NamedTuple):
    name: str
    mode: int
    data: bytes = b""


def base(modules: Sequence[Path]) -> bytes:
    """All but what a machine is to do; compressed."""
    program = stat.S_IFREG | 0o755
    busybox = Path(str(shutil.which("busybox"))).read_bytes()
    loaded = (
        _Entry(f"modules/{number:03}-{path.name}", program, path.read_bytes())
        for number, path in enumerate(modules)
    )
    entries = (
        *(_Entry(name, stat.S_IFDIR | 0o755) for name in _FOLDERS),
        _Entry("bin/busybox", program, busybox),
        *loaded,
        _Entry("init", program, _INIT.encode()),
    )
    return gzip.compress(_cpio(entries), 1)


def task(script: str) -> bytes:
    """What a machine is to do, with this machine's root as its own: to stand behind the base."""
    return gzip.compress(_cpio([_Entry("guest.sh", stat.S_IFREG | 0o755, script.encode())]), 1)


def _cpio(entries: Iterable[_Entry]) -> bytes:
    out = bytearray()
    for inode, entry in enumerate((*entries, _Entry("TRAILER!!!", 0)), 1):
        name = entry.name.encode() + b"\0"
        fields = (inode, entry.mode, 0, 0, 1, 0, len(entry.data), 0, 0, 0, 0, len(name), 0)
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += bytes(-len(out) % 4) + entry.data
        out += bytes(-len(out) % 4)
    return bytes(out)
