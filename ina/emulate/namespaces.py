"""The namespaces of an emulation: named, searched for processes, removed.

All that an emulation makes lies in namespaces called ``ina.NETWORK.NODE``, and in files of that
name: interfaces end with them, and whoever runs in them is found by them. So what a killed
emulation left can be removed by anybody who knows its name.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from ina import netns
from ina.errors import MissingToolError, UnavailableError
from ina.netns import NetnsError

PREFIX = "ina"
ETC_DIR = Path("/etc/netns")
"""``ip netns exec NAME`` shows files of ``/etc/netns/NAME`` to its command as those of ``/etc``."""
_TERM_S, _KILL_S = 5.0, 10.0
_POLL_S = 0.02


def require_privileges() -> None:
    """Raises :class:`MissingToolError` where namespaces cannot be made."""
    if why := netns.why_not(also=["tc"]):
        raise MissingToolError(f"emulation {why}" + (": try sudo" if os.geteuid() else ""))


def namespace(network: str, node: str) -> str:
    """The name of a node's namespace."""
    return f"{PREFIX}.{network}.{node}"


def networks() -> dict[str, list[str]]:
    """Namespaces of all emulations on this machine, by network."""
    found: dict[str, list[str]] = {}
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(netns.NETNS_DIR)):
            prefix, _, rest = name.partition(".")
            network, dot, _ = rest.partition(".")
            if prefix == PREFIX and dot:
                found.setdefault(network, []).append(name)
    return found


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
        if (netns.NETNS_DIR / name).exists():
            try:
                netns.delete(name)
            except NetnsError as error:
                raise UnavailableError(f"namespace {name} stays: {error}") from None
    return ended


def processes(names: list[str]) -> set[int]:
    """Ids of the processes in these namespaces."""
    inodes = set()
    for name in names:
        with contextlib.suppress(OSError):
            stat = (netns.NETNS_DIR / name).stat()
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
