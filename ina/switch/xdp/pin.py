"""A switch in the kernel that outlives its process, by name.

What the kernel has is pinned in its BPF file system; what it does not tell is in a file in /run,
which does not outlive the kernel either. One process at a time has the name.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ina.errors import InvalidInputError
from ina.switch.keeper import Change, Keeper, Kept
from ina.switch.xdp import pins
from ina.switch.xdp.compile import layout_digest
from ina.switch.xdp.libbpf import Programs
from ina.switch.xdp.links import Attached, XdpMode
from ina.switch.xdp.pins import PinError, PinnedPrograms

_log = logging.getLogger(__name__)

STATES = Path("/run/ina/pins")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,31}")
_INGRESS = "ina_ingress"
_TABLES = """
CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value BLOB);
CREATE TABLE IF NOT EXISTS entities (key BLOB PRIMARY KEY, entity BLOB);
"""


class Pin(Keeper):
    """A context manager; when it ends, what is pinned goes on."""

    def __init__(self, name: str, mode: XdpMode = XdpMode.native) -> None:
        """Raises InvalidInputError: that is no name; :class:`PinError`: a process has it, or what
        is pinned cannot be taken over."""
        self.name = check_name(name)
        self._folder = pins.folder_of(name)
        self._held = ExitStack()
        held = lock(name)
        if held is None:
            raise PinError(f"pin {name}: {holder(name)} runs it")
        self._held.callback(os.close, held)
        self._mode = mode
        self._next: int | None = None
        """What was pinned since, and is to be the current one."""
        self._next_program = 0
        try:
            with self._errors():
                # Not synchronous: it need not outlive the kernel.
                self._state = sqlite3.connect(
                    self._checked_state(), isolation_level=None, check_same_thread=False
                )
            self._held.callback(self._state.close)
            self._check()
            self._sweep()
        except BaseException:
            self.close()
            raise

    def _checked_state(self) -> Path:
        path = state_path(self.name)
        if not path.exists() and self._folder.exists() and any(self._folder.iterdir()):
            raise self.foreign(f"is none that {path} tells of")
        return path

    def _check(self) -> None:
        with self._errors():
            self._state.execute("PRAGMA synchronous = OFF")
            self._state.executescript(_TABLES)
        if self._fact("config") is not None and not self._generation(self._current).exists():
            _log.warning("pin %s: nothing is pinned any more; it begins anew", self.name)
            with self._errors():
                self._state.execute("DELETE FROM facts")
        if self._fact("config") is not None:
            if self._fact("layout") != layout_digest():
                raise self.foreign("is of another version of ina")
            if self._fact("mode") != self._mode.value:
                raise self.foreign(f"runs in {self._fact('mode')} mode")

    # -- what is pinned --

    def programs(self) -> PinnedPrograms:
        """Those that go on. Raises :class:`PinError`: others are there; XdpError."""
        found = PinnedPrograms(self._generation(self._current))
        if pins.number_of(found.program(_INGRESS)) != self._fact("program"):
            found.close()
            raise self.foreign("has another program")
        return found

    def pin(self, programs: Programs) -> None:
        """They go on from now on; they are taken over once :meth:`begin` is called, which removes
        those before. Raises XdpError."""
        if self._next is not None:  # it was not used
            pins.remove(self._generation(self._next))
        self._next = self._current + 1
        pins.pin(programs, self._generation(self._next))
        self._next_program = pins.number_of(programs.program(_INGRESS))

    def link(self, port: int) -> Attached | None:
        """What runs at a port's interface; None: nothing does. Raises XdpError."""
        return pins.pinned_link(pins.link_path(self._folder, port))

    def keep_link(self, port: int, attached: Attached) -> None:
        """It goes on. Raises XdpError."""
        attached.pin(pins.link_path(self._folder, port))

    def drop_links(self, but: Mapping[int, int]) -> None:
        """All but those of these ports at the interfaces of these indices. Raises XdpError."""
        for port, path in pins.links(self._folder).items():
            attached = self.link(port)
            if attached is None:
                continue
            index = attached.index
            attached.close()
            if index != but.get(port):
                pins.remove_link(path)

    # -- what is kept --

    def kept(self) -> Kept | None:
        """See :meth:`Keeper.kept`."""
        config = self._fact("config")
        if config is None:
            return None
        with self._errors():
            rows = self._state.execute("SELECT entity FROM entities ORDER BY rowid").fetchall()
        return Kept(config, tuple(entity for (entity,) in rows))

    def begin(self, config: bytes, entities: Mapping[bytes, bytes]) -> None:
        """See :meth:`Keeper.begin`."""
        before = self._current
        facts: dict[str, object] = {"config": config, "mode": self._mode.value}
        facts["layout"] = layout_digest()
        if self._next is not None:
            facts |= {"generation": self._next, "program": self._next_program}
        with self._transaction():
            self._state.executemany("REPLACE INTO facts VALUES (?, ?)", facts.items())
            self._state.execute("DELETE FROM entities")
            self._state.executemany("INSERT INTO entities VALUES (?, ?)", entities.items())
        if self._next is not None:
            self._next = None
            pins.remove(self._generation(before))

    def record(self, changes: Sequence[Change]) -> None:
        """See :meth:`Keeper.record`."""
        with self._transaction():
            for key, entity in changes:
                if entity is None:
                    self._state.execute("DELETE FROM entities WHERE key = ?", (key,))
                else:
                    self._state.execute(
                        "INSERT INTO entities VALUES (?, ?)"
                        " ON CONFLICT (key) DO UPDATE SET entity = excluded.entity",
                        (key, entity),
                    )

    # -- life --

    def close(self) -> None:
        """Idempotent."""
        self._held.close()

    def __enter__(self) -> Pin:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    @property
    def _current(self) -> int:
        """Of the programs that are taken over; 0: none are."""
        found = self._fact("generation")
        return 0 if found is None else int(found)

    def _generation(self, number: int) -> Path:
        return self._folder / str(number)

    def _sweep(self) -> None:
        """What a process has left that was killed as it set a pipeline."""
        if not self._folder.exists():
            return
        for path in self._folder.iterdir():
            if path.name.isdecimal() and int(path.name) != self._current:
                pins.remove(path)
        if self._fact("config") is None:
            self.drop_links({})

    def _fact(self, name: str) -> Any:
        with self._errors():
            row = self._state.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else row[0]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._errors():
            self._state.execute("BEGIN")
            try:
                yield
            except BaseException:
                self._state.execute("ROLLBACK")
                raise
            self._state.execute("COMMIT")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise PinError(f"pin {self.name}: {state_path(self.name)}: {error}") from None

    def foreign(self, why: str) -> PinError:
        """See :meth:`Keeper.foreign`."""
        return PinError(
            f"pin {self.name}: what is there {why}: ina switch detach {self.name} removes it"
        )


def check_name(name: str) -> str:
    """Raises InvalidInputError."""
    if not _NAME.fullmatch(name):
        raise InvalidInputError(
            f"pin {name!r}: expected 1 to 32 letters, digits, hyphens and underscores"
        )
    return name


def state_path(name: str) -> Path:
    """Of what the kernel does not tell."""
    return STATES / f"{name}.sqlite"


def lock(name: str) -> int | None:
    """An open file that is locked, and says who we are; None: another process has it. Raises
    :class:`PinError`."""
    path = _lock_path(name)
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise PinError(f"pin {name}: {path}: {error.strerror}") from None
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(held)
            return None
        # Who detaches takes the file away: a lock on that file would be worth nothing.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(held), os.stat(path)):
                os.truncate(held, 0)
                os.write(held, str(os.getpid()).encode())
                return held
        os.close(held)


def holder(name: str) -> str:
    """Who has it, in words."""
    try:
        return f"process {int(_lock_path(name).read_text())}"
    except (OSError, ValueError):
        return "another process"


def forget(name: str) -> bool:
    """Removes what is kept of a pin whose lock this process has; returns whether something was."""
    was_there = state_path(name).exists()
    for path in (*STATES.glob(f"{name}.sqlite*"), _lock_path(name)):
        path.unlink(missing_ok=True)
    return was_there


def _lock_path(name: str) -> Path:
    return STATES / f"{name}.lock"
