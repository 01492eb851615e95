"""Which emulations are on this machine: one runs while somebody holds its lock.

What a killed one left, namespaces and processes in them, stays until :func:`clean` or the next
emulation of the same name removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ina.emulate import namespaces
from ina.emulate.errors import EmulationError
from ina.errors import DeadlineError, InvalidInputError, UnavailableError

RUN_DIR = Path("/run/ina-emulate")
START_TIMEOUT_S = 300.0
FAIL_TIMEOUT_S = 300.0
"""A switch that is mended may have to compile its program, as at the start."""
_POLL_S = 0.1


class HostState(msgspec.Struct, frozen=True):
    """A host of a running emulation."""

    name: str
    address: str
    namespace: str
    ranks: int = 1
    """Of a job, on it."""


class State(msgspec.Struct, frozen=True):
    """What a running emulation tells other processes."""

    name: str
    pid: int
    folder: str
    hosts: list[HostState]
    switches: dict[str, str]
    """Kind by name."""
    controller: str
    """host:port; empty: there is none."""
    net: str
    """The namespace of switches and controller."""
    parts: Sequence[str] = ()
    """What can fail: switches, and links as leaf1-spine1."""
    down: Sequence[str] = ()
    """Of these, what is out of order."""


@contextlib.contextmanager
def claimed(name: str) -> Iterator[None]:
    """Holds the name. Raises :class:`UnavailableError`: an emulation of this name runs."""
    lock = _lock(name)
    if lock is None:
        raise UnavailableError(
            f"emulation {name} is running (pid {_holder(name)}): stop it with Ctrl-C, or give this"
            " one another --name"
        )
    try:
        _state_file(name).unlink(missing_ok=True)  # a killed one's
        _down_file(name).unlink(missing_ok=True)
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        _state_file(name).unlink(missing_ok=True)
        _down_file(name).unlink(missing_ok=True)
        for file in (_state_file(name), _down_file(name)):
            _draft_of(file).unlink(missing_ok=True)
        _lock_file(name).unlink(missing_ok=True)
        os.close(lock)


def publish(state: State) -> None:
    """Lets ``ina emulate run`` and ``exec`` find it; :func:`claimed` takes it back."""
    _write(_state_file(state.name), msgspec.json.encode(state))


def running(name: str = "", *, start_timeout_s: float = START_TIMEOUT_S) -> State:
    """The emulation called ``name``; empty: the only one. One that is coming up is waited for.

    Raises :class:`UnavailableError` if it does not run, :class:`InvalidInputError` if several do,
    :class:`DeadlineError`.
    """
    deadline = time.monotonic() + start_timeout_s
    while True:
        held = [file.stem for file in sorted(RUN_DIR.glob("*.lock")) if _is_held(file.stem)]
        if name and name not in held:
            raise UnavailableError(f"no emulation {name} is running: ina emulate TOPOLOGY")
        if not held:
            raise UnavailableError("no emulation is running: ina emulate TOPOLOGY")
        if not name and len(held) > 1:
            raise InvalidInputError(f"{', '.join(held)} are running: say which with --name")
        with contextlib.suppress(FileNotFoundError):  # it is not ready, or has just ended
            return msgspec.json.decode(_state_file(name or held[0]).read_bytes(), type=State)
        if time.monotonic() >= deadline:
            raise DeadlineError(f"emulation {held[0]}: not up after {start_timeout_s:g} s")
        time.sleep(_POLL_S)


def put_down(state: State, names: Sequence[str], *, is_down: bool) -> State:
    """Asks a running emulation to let parts fail, or to mend them; returns what it then is.

    Raises :class:`InvalidInputError`: it has no such part; :class:`UnavailableError`: it has ended;
    :class:`DeadlineError`.
    """
    for name in names:
        if name not in state.parts:
            known = ", ".join(state.parts)
            raise InvalidInputError(f"emulation {state.name} has no {name}: have {known}")
    before = asked_down(state.name)
    wanted = before.union(names) if is_down else before.difference(names)
    _write(_down_file(state.name), msgspec.json.encode(sorted(wanted)))
    deadline = time.monotonic() + FAIL_TIMEOUT_S
    while set(state.down) != wanted:
        if time.monotonic() >= deadline:
            raise DeadlineError(
                f"emulation {state.name}: has not done it after {FAIL_TIMEOUT_S:g} s, see"
                f" {state.folder}"
            )
        time.sleep(_POLL_S)
        state = running(state.name)
    return state


def asked_down(name: str) -> frozenset[str]:
    """What is to be out of order."""
    try:
        return frozenset(msgspec.json.decode(_down_file(name).read_bytes(), type=list[str]))
    except FileNotFoundError:
        return frozenset()


def clean(name: str = "") -> list[dict[str, Any]]:
    """Removes what killed emulations left: all of them, or that of ``name``.

    Returns a row for each: name, namespaces and processes removed; or ``running``, the process that
    still holds it. Raises :class:`UnavailableError` if something stays.
    """
    rows: list[dict[str, Any]] = []
    left = namespaces.networks()
    named = {file.name.partition(".")[0] for file in RUN_DIR.glob("*.*")} | set(left)
    for network in sorted(named):
        if name and network != name:
            continue
        try:
            with claimed(network):
                ended = namespaces.remove(left.get(network, []))
        except UnavailableError:
            if not _is_held(network):
                raise
            rows.append({"name": network, "running": _holder(network)})
            continue
        spaces = len(left.get(network, []))
        rows.append({"name": network, "namespaces": spaces, "processes": ended})
    return rows


def _write(file: Path, data: bytes) -> None:
    draft = _draft_of(file)
    draft.write_bytes(data)
    draft.rename(file)  # nobody reads half of it


def _lock(name: str) -> int | None:
    """An open, locked file; None if another process has the lock."""
    RUN_DIR.mkdir(parents=True, exist_ok=True)
    while True:
        fd = os.open(_lock_file(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            return None
        # A holder that ends takes the file away: a lock on that file would be worth nothing.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(fd), os.stat(_lock_file(name))):
                return fd
        os.close(fd)


def _is_held(name: str) -> bool:
    try:
        fd = os.open(_lock_file(name), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def _holder(name: str) -> int:
    try:
        return int(_lock_file(name).read_text())
    except (OSError, ValueError):
        raise EmulationError(f"{_lock_file(name)}: cannot read who holds it") from None


def _lock_file(name: str) -> Path:
    return RUN_DIR / f"{name}.lock"


def _state_file(name: str) -> Path:
    return RUN_DIR / f"{name}.json"


def _down_file(name: str) -> Path:
    return RUN_DIR / f"{name}.down"


def _draft_of(file: Path) -> Path:
    """Each has its own: the emulation writes one while a command writes the other."""
    return file.with_name(f"{file.name}.draft")
