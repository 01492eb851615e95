"""Processes that begin with their imports done: forks of one that has imported torch and ina.

A start of ``python -m ina controller run`` takes a second of a core for imports alone, one that
imports torch two or three. A fork of the server has no threads but its own, and is a process as any
other: it can be killed.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

from ina.cli.main import main


class _Child(multiprocessing.context.ForkServerProcess):
    """Else a rank, switch or controller whose test is killed (Ctrl-C) goes on for good."""

    def start(self) -> None:
        ensure_running()
        super().start()

    def run(self) -> None:
        threading.Thread(target=_end_with_parent, name="end-with-parent", daemon=True).start()
        super().run()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)


_READY_S = 120.0
_ENVIRON = dict(os.environ)
"""The run's, not what a test has made of it."""
context = multiprocessing.get_context("forkserver")
context.Process = _Child  # type: ignore[misc]


@atexit.register
def _kill_children() -> None:
    """Before multiprocessing waits for them, as it does where a run is interrupted."""
    for child in multiprocessing.active_children():
        child.kill()


# What is not installed is left out. Pytest, for a fork imports its parent's main module.
context.set_forkserver_preload(
    [
        "tests.quiet_grpc",
        "pytest",
        "tests.torch.preload",
        "tests.controller.preload",
        "tests.worlds.processes.preload",
        "tests.worlds.processes.forks",
    ]
)


@functools.cache
def ensure_running() -> None:
    """Starts the server, once, in the environment that this process began with."""
    now = dict(os.environ)
    try:
        os.environ.clear()
        os.environ.update(_ENVIRON)
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(now)


def begin() -> None:
    """As a session of tests begins; with ``INA_FORKS_READY`` returns when the server can fork."""
    ensure_running()
    if "INA_FORKS_READY" in os.environ:
        call(os.getpid, timeout_s=_READY_S)


@dataclass
class Command:
    """``ina ARGUMENTS`` that runs, as :func:`start_ina` began it."""

    process: BaseProcess
    _stdout: Connection

    def first_line(self, timeout_s: float) -> bytes:
        """What it says first on stdout; nothing, if it ends before or does not say it in time."""
        line = b""
        while not line.endswith(b"\n") and self._stdout.poll(timeout_s):
            byte = os.read(self._stdout.fileno(), 1)
            if not byte:
                break
            line += byte
        return line

    def signal(self, number: signal.Signals) -> None:
        """Sends it a signal, if it still runs."""
        if self.process.is_alive() and self.process.pid is not None:
            os.kill(self.process.pid, number)

    def end(self, timeout_s: float) -> int | None:
        """Waits for its end, kills it after ``timeout_s``; its exit code, as of ``subprocess``."""
        self.process.join(timeout_s)
        code = self.process.exitcode
        self.process.kill()
        self.process.join()
        self._stdout.close()
        return code


def run_ina(
    *arguments: str, timeout_s: float, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """``ina ARGUMENTS`` in this process's environment and folder, to its end.

    ``python``: its ``sys.executable``.
    """
    with tempfile.TemporaryDirectory() as folder:
        said = (Path(folder, "stdout"), Path(folder, "stderr"))
        place = _Place(dict(os.environ), os.getcwd(), python)
        process = context.Process(target=_run_to_its_end, args=(arguments, place, said))
        process.start()
        process.join(timeout_s)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(["ina", *arguments], timeout_s)
        out, err = (file.read_text() for file in said)
        return subprocess.CompletedProcess(["ina", *arguments], process.exitcode, out, err)


@dataclass(frozen=True)
class _Place:
    """Where a fork runs."""

    environ: dict[str, str]
    folder: str
    python: str


def _run_to_its_end(arguments: tuple[str, ...], place: _Place, said: tuple[Path, Path]) -> None:
    for stream, file in zip((sys.stdout, sys.stderr), said, strict=True):
        with file.open("ab") as opened:
            os.dup2(opened.fileno(), stream.fileno())
    _become(arguments, place)


def _become(arguments: tuple[str, ...], place: _Place) -> None:
    os.environ.clear()
    os.environ.update(place.environ)
    os.chdir(place.folder)
    sys.executable = place.python
    sys.argv = ["ina", *arguments]
    main()


def call(function: Callable[..., object], *arguments: object, timeout_s: float) -> tuple[int, str]:
    """Calls it in a process of its own, where no other test's threads end meanwhile.

    Its exit code, and what it said on stderr.
    """
    with tempfile.NamedTemporaryFile("r") as said:
        process = context.Process(target=_call, args=(function, arguments, said.name))
        process.start()
        process.join(timeout_s)
        code = process.exitcode
        if code is None:
            process.kill()
            raise subprocess.TimeoutExpired([function.__name__], timeout_s)
        return code, said.read()


def _call(function: Callable[..., object], arguments: tuple[object, ...], said: str) -> None:
    with open(said, "ab") as file:
        os.dup2(file.fileno(), sys.stderr.fileno())
    function(*arguments)


class Running:
    """``ina ARGUMENTS`` with pipes of text: what tests use of ``subprocess.Popen``."""

    def __init__(self, *arguments: str, python: str = sys.executable) -> None:
        """In this process's environment and folder; ``python``: its ``sys.executable``."""
        place = _Place(dict(os.environ), os.getcwd(), python)
        pipes = [context.Pipe(duplex=False) for _ in range(2)]
        self._process = context.Process(
            target=_run_into_pipes,
            args=(arguments, place, [writer for _, writer in pipes]),
        )
        self._process.start()
        self.stdout, self.stderr = (os.fdopen(os.dup(reader.fileno())) for reader, _ in pipes)
        for ends in pipes:
            for end in ends:
                end.close()

    @property
    def pid(self) -> int:
        """Of the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """As of ``subprocess``; None: it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Looks whether it runs."""
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """If it still runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """At once."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """By SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def wait(self, timeout: float) -> int:
        """For its end."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(["ina"], timeout)
        return self.returncode

    def communicate(self, timeout: float) -> tuple[str, str]:
        """What it still says, until its end."""
        streams = (self.stdout, self.stderr)
        with ThreadPoolExecutor(2) as both:
            said = [both.submit(stream.read) for stream in streams if not stream.closed]
            self.wait(timeout)
            out, err = [it.result() for it in said] or ("", "")
        for stream in streams:
            stream.close()
        return out, err


def _run_into_pipes(arguments: tuple[str, ...], place: _Place, pipes: list[Connection]) -> None:
    for stream, pipe in zip((sys.stdout, sys.stderr), pipes, strict=True):
        os.dup2(pipe.fileno(), stream.fileno())
        pipe.close()
    _become(arguments, place)


def start_ina(
    *arguments: str,
    environ: Mapping[str, str],
    log: Path | None = None,
    constants: Mapping[tuple[str, str], float] | None = None,
) -> Command:
    """``ina ARGUMENTS`` with these INA_* variables and no others; ``log`` gets its stderr.

    ``constants``: what modules' names are there, by module and name.
    """
    reader, writer = context.Pipe(duplex=False)
    process = context.Process(
        target=_run, args=(arguments, dict(environ), writer, log, dict(constants or {}))
    )
    process.start()
    writer.close()
    return Command(process, reader)


def _run(
    arguments: tuple[str, ...],
    environ: dict[str, str],
    stdout: Connection,
    log: Path | None,
    constants: dict[tuple[str, str], float],
) -> None:
    for (module, name), value in constants.items():
        setattr(importlib.import_module(module), name, value)
    for name in [name for name in os.environ if name.startswith("INA_")]:
        del os.environ[name]
    os.environ.update(environ)
    os.dup2(stdout.fileno(), sys.stdout.fileno())
    stdout.close()
    if log is not None:
        with log.open("ab") as file:
            os.dup2(file.fileno(), sys.stderr.fileno())
    sys.argv = ["ina", *arguments]
    main()
