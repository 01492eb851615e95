"""The commands ``ina`` and ``python FILE`` of a page, as forks of a process that has its imports.

Each process of ina's takes half a second of a core and more to import what it runs with, and pages
start a hundred. So in ``make test`` a page finds an ``ina`` and a ``python`` on PATH that have
a fork run the same, in their place: with their arguments, folder, environment, files and network
namespace. A signal to one goes to its fork, which ends with it, and it ends as its fork does.
``make test-long`` has the real ones.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import runpy
import shutil
import signal
import socket
import sys
import threading
from pathlib import Path
from typing import Any

from tests.forks import context
from tests.selection import LONG

_CLONE_NEWNET = 0x4000_0000
_MOST_BYTES = 1 << 17
"""Of a request: arguments and environment."""
# Imports what loads quickly, alone. It sends signals on as bytes, and is told how its fork ended.
_STAND_IN = """#!{python} -ISs
import array, json, os, signal, socket, sys
name, arguments = os.path.basename(sys.argv[0]), sys.argv[1:]
if name == "python" and not (arguments and arguments[0].endswith(".py")):
    os.execv({python!r}, [{python!r}, *arguments])
link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
link.connect({address!r})
asked = dict(name=name, arguments=arguments, folder=os.getcwd(), environ=dict(os.environ))
network = os.open("/proc/self/ns/net", os.O_RDONLY)
link.sendmsg([json.dumps(asked).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
             array.array("i", [0, 1, 2, network]))])
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(number) is not signal.SIG_IGN:
        signal.signal(number, lambda number, _: link.send(bytes([number])))
code = int(link.recv(16) or b"-9")
if code < 0:
    signal.signal(-code, signal.SIG_DFL) if -code != signal.SIGKILL else None
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


class Forks:
    """Serves a page's commands from ``folder``, which goes before all on its PATH."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        address = str(folder / "socket")
        text = _STAND_IN.format(python=sys.executable, address=address)
        for name in ("ina", "python"):
            (folder / name).write_text(text)
            (folder / name).chmod(0o755)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(address)
        self._listener.listen(64)
        self._thread = threading.Thread(target=self._serve, name="forks of a page")
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
            served.append(threading.Thread(target=_run, args=(link,), name="fork of a page"))
            served[-1].start()
        for thread in served:
            thread.join()


def _run(link: socket.socket) -> None:
    with link:
        process = context.Process(target=_stand_for, args=(link,))
        process.start()
        process.join()
        with contextlib.suppress(ProcessLookupError):  # nobody is left of its group
            os.killpg(process.pid or 0, signal.SIGKILL)
        with contextlib.suppress(OSError):
            link.send(str(process.exitcode).encode())


def _stand_for(link: socket.socket) -> None:
    """In the fork."""
    text, files, _, _ = socket.recv_fds(link, _MOST_BYTES, 4)
    asked: dict[str, Any] = json.loads(text)
    os.setsid()
    for number, file in enumerate(files[:3]):
        os.dup2(file, number)
    if ctypes.CDLL(None, use_errno=True).setns(files[3], _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")
    for file in files:
        os.close(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environ"])
    threading.Thread(target=_obey, args=(link,), name="signals", daemon=True).start()
    if asked["name"] == "ina":
        from ina.cli.main import main

        sys.argv = ["ina", *asked["arguments"]]
        main()
    path = asked["arguments"][0]
    sys.argv = asked["arguments"]
    sys.path.insert(0, str(Path(path).absolute().parent))
    runpy.run_path(path, run_name="__main__")


def _obey(link: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while number := link.recv(1):
            os.kill(os.getpid(), number[0])
    os.killpg(0, signal.SIGKILL)  # who stands for this is gone


def forks_for(folder: Path) -> Forks | None:
    """None: the page runs the commands themselves."""
    return None if LONG else Forks(folder)
