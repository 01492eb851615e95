"""Network namespaces: made, entered, searched for processes, removed.

All that an emulation makes lies in namespaces called ``ina.NETWORK.NODE``, and in files of that
name: interfaces end with them, and whoever runs in them is found by them. So what a killed
emulation left can be removed by anybody who knows its name.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from ina.emulate.errors import EmulationError
from ina.errors import MissingToolError, UnavailableError

PREFIX = "ina"
NETNS_DIR = Path("/run/netns")
ETC_DIR = Path("/etc/netns")
"""``ip netns exec NAME`` shows files of ``/etc/netns/NAME`` to its command as those of ``/etc``."""
COMMAND_TIMEOUT_S = 30.0
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_CLONE_NEWNET = 0x40000000
_TERM_S, _KILL_S = 5.0, 10.0
_POLL_S = 0.02


def require_privileges() -> None:
    """Raises :class:`MissingToolError` where namespaces cannot be made."""
    if os.geteuid() != 0:
        raise MissingToolError("emulation needs root, for network namespaces: try sudo")
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            raise MissingToolError(f"no {tool} command: install iproute2")


def namespace(network: str, node: str) -> str:
    """The name of a node's namespace."""
    return f"{PREFIX}.{network}.{node}"


def networks() -> dict[str, list[str]]:
    """Namespaces of all emulations on this machine, by network."""
    found: dict[str, list[str]] = {}
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(NETNS_DIR)):
            prefix, _, rest = name.partition(".")
            network, dot, _ = rest.partition(".")
            if prefix == PREFIX and dot:
                found.setdefault(network, []).append(name)
    return found


def command(*arguments: str) -> str:
    """Runs ``ip`` or ``tc``; returns what it prints. Raises :class:`EmulationError`."""
    try:
        done = subprocess.run(
            arguments, capture_output=True, text=True, timeout=COMMAND_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise EmulationError(f"{' '.join(arguments)}: no end in {COMMAND_TIMEOUT_S:g} s") from None
    if done.returncode:
        said = done.stderr.strip().partition("\n")[0] or f"exit code {done.returncode}"
        raise EmulationError(f"{' '.join(arguments)}: {said}")
    return done.stdout


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """This thread in namespace ``name``; sockets made here stay there.

    Raises :class:`EmulationError`: there is no such namespace.
    """
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            other = os.open(NETNS_DIR / name, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise EmulationError(f"namespace {name}: {error.strerror}") from None
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
    """Ctrl-C and its like take effect at the end of the block.

    ``subprocess`` forgets a child when a signal comes between its start and the return of Popen: a
    namespace that such a child makes would be made after all others were removed.
    """
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


def give_names(name: str, addresses: Iterable[tuple[str, str]]) -> None:
    """Lets programs in namespace ``name`` resolve names: pairs of an address and a name.

    Where ``/etc`` cannot be written they do without: nothing of ina needs it.
    """
    lines = [f"{address} {other}\n" for address, other in addresses]
    with contextlib.suppress(OSError):
        common = Path("/etc/hosts").read_text()
        (ETC_DIR / name).mkdir(parents=True, exist_ok=True)
        (ETC_DIR / name / "hosts").write_text("".join([common.rstrip("\n"), "\n", *lines]))


def remove(names: list[str]) -> int:
    """Ends every process in these namespaces, then deletes them; returns how many it ended.

    Raises :class:`UnavailableError` if a process or a namespace stays.
    """
    ended = _end_processes(names)
    for name in names:
        shutil.rmtree(ETC_DIR / name, ignore_errors=True)
        if (NETNS_DIR / name).exists():
            try:
                command("ip", "netns", "del", name)
            except EmulationError as error:
                raise UnavailableError(f"namespace {name} stays: {error}") from None
    return ended


def processes(names: list[str]) -> set[int]:
    """Ids of the processes in these namespaces."""
    inodes = set()
    for name in names:
        with contextlib.suppress(OSError):
            stat = (NETNS_DIR / name).stat()
            inodes.add((stat.st_dev, stat.st_ino))
    found = set()
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with contextlib.suppress(OSError):  # it has ended, or is a zombie
                stat = os.stat(f"/proc/{entry}/ns/net")
                if (stat.st_dev, stat.st_ino) in inodes:
                    found.add(int(entry))
    return found - {os.getpid()}


def _end_processes(names: list[str]) -> int:
    ended: set[int] = set()
    started = time.monotonic()
    told: set[int] = set()
    while left := processes(names):
        passed_s = time.monotonic() - started
        if passed_s > _TERM_S + _KILL_S:
            pids = ", ".join(map(str, sorted(left)))
            raise UnavailableError(f"processes {pids} do not end, in {', '.join(names)}")
        number = signal.SIGTERM if passed_s < _TERM_S else signal.SIGKILL
        for pid in left - told if number == signal.SIGTERM else left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        told |= left
        ended |= left
        time.sleep(_POLL_S)
    return len(ended)


def _setns(fd: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, _CLONE_NEWNET) != 0:
        number = ctypes.get_errno()
        raise EmulationError(f"cannot enter a network namespace: {os.strerror(number)}")
