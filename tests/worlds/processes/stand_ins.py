"""The commands ``ina`` and ``python`` as forks of a process that has imported what they import.

Each process of ina's takes half a second of a core and more to import what it runs with, one with
torch two or three, and pages and tests start hundreds. So in ``make test`` a page finds an ``ina``
and a ``python`` on PATH, and a test at :func:`python`, that have a fork run the same, in their
place: with their arguments, folder, environment, files and network namespace. A signal to one goes
to its fork, which ends with it, and it ends as its fork does. What a fork starts as
``sys.executable`` is one, too. ``make test-long`` has the real ones.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import functools
import json
import os
import runpy
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.selection import LONG
from tests.worlds.processes.forks import context, ensure_running

_SPACES = {"net": 0x4000_0000, "mnt": 0x0002_0000}
"""What ``ip netns exec`` changes, by its name below /proc/PID/ns: CLONE_NEWNET, CLONE_NEWNS."""
_CLONE_FS = 0x200
_PYTHON = sys.executable
PROCESSES = 1 if LONG else 2
"""What one of :func:`python` is: a stand-in, and its fork."""
_MOST_BYTES = 1 << 17
"""Of a request: arguments and environment."""
# Imports what loads quickly, alone. It sends signals on as bytes, and is told how its fork ended.
_STAND_IN = """#!{python} -ISs
import array, json, os, signal, socket, sys
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
if name == "torchrun":
    arguments = ["-m", "torch.distributed.run", *arguments]
if name == "python":
    while arguments[:1] == ["-u"]:
        del arguments[0]
    if not (arguments and (arguments[0] in ("-m", "-c") or arguments[0].endswith(".py"))):
        os.execv({python!r}, [{python!r}, *sys.argv[1:]])
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect({address!r})
asked = dict(name=name, arguments=arguments, folder=os.getcwd(), environ=dict(os.environ))
spaces = [os.open("/proc/self/ns/" + name, os.O_RDONLY) for name in {spaces!r}]
link.sendmsg([json.dumps(asked).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
             array.array("i", [0, 1, 2, *spaces]))])
def hand_on(number, _):
    try:
        link.send(bytes([number]))
    except OSError:
        pass  # it has ended
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    # Below nohup, too, who takes up SIGHUP takes it up; and the fork ignores it as this does.
    if number == signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, hand_on)
try:
    said = link.recv(16)
except ConnectionResetError:  # it ended before it read a signal; what it said comes after
    said = link.recv(16)
code = int(said or b"-9")
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Forks:
    """Serves the commands in ``folder``, which goes before all on a page's PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        address = str(folder / "socket")
        text = _STAND_IN.format(python=sys.executable, address=address, spaces=list(_SPACES))
        for name in ("ina", "python", "torchrun"):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(address)
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._serve, name="stand-ins", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """When all commands have ended, or their stand-ins, which ends them."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        shutil.rmtree(self.folder)

    def _serve(self) -> None:
        served = []
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                break
            args = (link, str(self.folder / "python"))
            served.append(threading.Thread(target=_run, args=args, name="stand-in", daemon=True))
            served[-1].start()
        for thread in served:
            thread.join()


def _run(link: socket.socket, python: str) -> None:
    with link:
        process = context.Process(target=_stand_for, args=(link, python))
        process.start()
        process.join()
        with contextlib.suppress(ProcessLookupError):  # nobody is left of its group
            os.killpg(process.pid or 0, signal.SIGKILL)
        with contextlib.suppress(OSError):
            link.send(str(process.exitcode).encode())


def _stand_for(link: socket.socket, python: str) -> None:
    """In the fork."""
    text, files, _, _ = socket.recv_fds(link, _MOST_BYTES, 3 + len(_SPACES))
    asked: dict[str, Any] = json.loads(text)
    os.setsid()
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    _enter(files[3:])
    for file in files:
        os.close(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    threading.Thread(target=_obey, args=(link,), name="signals", daemon=True).start()
    _as_if_begun()
    sys.executable = python
    try:
        if asked["name"] == "ina":
            _ina(asked["arguments"])
        else:
            _program(*asked["arguments"])
    except Exception:  # multiprocessing would say of which fork
        traceback.print_exc()
        sys.exit(1)
    finally:
        atexit._run_exitfuncs()


def _enter(spaces: list[int]) -> None:
    """This thread, and those that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.unshare(_CLONE_FS)  # from the thread that ends this process with its parent
    for (name, kind), file in zip(_SPACES.items(), spaces, strict=True):
        own = Path(f"/proc/self/ns/{name}").stat()
        if not os.path.samestat(own, os.fstat(file)) and libc.setns(file, kind):
            raise OSError(ctypes.get_errno(), f"setns {name}")


def _as_if_begun() -> None:
    """What the interpreter and libraries do when they begin, for this environment."""
    atexit._clear()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    if os.environ.get("PYTHONUNBUFFERED"):
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    threads = os.environ.get("OMP_NUM_THREADS", "")
    if threads.isdecimal():
        import torch

        torch.set_num_threads(int(threads))


def _ina(arguments: list[str]) -> None:
    from ina.cli.main import main

    if arguments[:2] == ["bench", "sim"]:  # it looks for the thread of a process that it starts
        sys.executable = _PYTHON
    sys.argv = ["ina", *arguments]
    main()


def _program(kind: str, *arguments: str) -> None:
    """As the interpreter runs what is after it on a command line."""
    if kind == "-m" and arguments[0] == "ina":
        _ina(list(arguments[1:]))
    elif kind == "-m":
        sys.argv = list(arguments)
        sys.path.insert(0, os.getcwd())
        sys.modules.pop(arguments[0], None)  # else it warns that it is there already
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    elif kind == "-c":
        sys.argv = ["-c", *arguments[1:]]
        sys.path.insert(0, "")
        sys.modules["__main__"] = main = ModuleType("__main__")
        exec(compile(arguments[0], "<string>", "exec"), vars(main))
    else:
        sys.argv = [kind, *arguments]
        sys.path.insert(0, str(Path(kind).absolute().parent))
        runpy.run_path(kind, run_name="__main__")


def _obey(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while number := link.recv(1):
            os.kill(os.getpid(), number[0])
    os.killpg(0, signal.SIGKILL)  # who stands for this is gone


@functools.cache
def python() -> str:
    """What to run in place of ``sys.executable``: its programs are forks, but in a long run."""
    if LONG:
        return sys.executable
    ensure_running()
    folder = Path(tempfile.mkdtemp(prefix="ina-forks-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(Forks(folder / "bin").folder / "python")


def forks_for(folder: Path) -> Forks | None:
    """None: the page runs the commands themselves."""
    return None if LONG else Forks(folder)
