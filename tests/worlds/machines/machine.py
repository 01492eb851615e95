"""A machine in QEMU: it boots, does one task with this machine's root as its own, and ends.

What it says on its serial line is read as it comes. Its root cannot be written to; ``/run`` is its
own.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.worlds.machines import initramfs
from tests.worlds.machines.kernel import Kernel

MODULES = ("virtio_pci", "virtio_net", "9pnet_virtio", "9p")
"""That every machine has."""
_MEMORY_MIB = 768
_END_S = 10.0


class Machine:
    """One that runs."""

    def __init__(self, command: Sequence[str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.said: list[str] = []
        """All lines that were taken."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def line(self, start: str, timeout_s: float) -> str:
        """What follows ``start`` in the next line that begins so.

        Raises AssertionError, with all that it said: it ends before, or time is over.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                line = self._lines.get(timeout=max(deadline - time.monotonic(), 0.0))
            except queue.Empty:
                line = None
            if line is None:
                raise AssertionError("\n".join((f"no line {start!r}:", *self.said)))
            self.said.append(line)
            if line.startswith(start):
                return line.removeprefix(start).strip()

    def stop(self) -> None:
        """Switches it off."""
        self._process.kill()
        self._process.wait(_END_S)
        self._reader.join(_END_S)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line.rstrip())
        self._lines.put(None)


@contextlib.contextmanager
def machine(
    kernel: Kernel,
    folder: Path,
    script: str,
    *,
    modules: Sequence[str] = (),
    devices: Sequence[str] = (),
    within: Sequence[str] = (),
) -> Iterator[Machine]:
    """Boots one, whose task is a shell script.

    ``folder``: for its files. ``modules``: that it has besides. ``devices``: more of QEMU's
    options. ``within``: what runs a command in a network namespace, as its first words.
    """
    initrd = folder / "initrd"
    loaded = kernel.modules(*MODULES, *modules)
    initrd.write_bytes(initramfs.base(loaded) + initramfs.task(script))
    command = [
        *within,
        *("qemu-system-x86_64", "-nodefaults", "-accel", "tcg", "-cpu", "max", "-no-reboot"),
        *("-m", str(_MEMORY_MIB), "-display", "none", "-serial", "stdio"),
        *("-kernel", str(kernel.image), "-initrd", str(initrd)),
        *("-append", "console=ttyS0 quiet panic=-1 mitigations=off"),
        *("-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"),
        *("-device", "virtio-9p-pci,fsdev=root,mount_tag=root"),
        *devices,
    ]
    running = Machine(command)
    try:
        yield running
    finally:
        running.stop()
