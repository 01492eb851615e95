"""A job on the hosts of a running emulation: one rank a host."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ina.emulate.errors import JobFailedError
from ina.emulate.namespaces import processes
from ina.emulate.processes import Logged, describe, environment, last_line
from ina.emulate.remains import HostState, State
from ina.emulate.waiting import Waiting
from ina.emulate.wiring import DATA_INTERFACE
from ina.errors import DeadlineError, InvalidInputError, UnavailableError
from ina.netns import within

MASTER_PORT = 29500
"""Each host has all ports to itself."""
OTHERS_GRACE_S = 10.0
"""After one rank failed the others may say what they saw; then they are stopped."""
_KILL_S = 10.0
_POLL_S = 0.1
_OTHERS_SETTINGS = ("INA_VALUES", "INA_LOSS_RATE", "INA_LOSS_SEED", "INA_CONTROLLER")
"""They are about another network than this one."""
_MARK = "EMULATED_JOB"
"""In the environment of all that a rank starts: torchrun's workers may outlive torchrun."""


def choose_hosts(state: State, names: Sequence[str]) -> list[HostState]:
    """The hosts called ``names``, in that order; none: all. Raises :class:`InvalidInputError`."""
    known = {host.name: host for host in state.hosts}
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"no host {name} in emulation {state.name}: have {', '.join(known)}"
            )
    if len(set(names)) != len(names):
        raise InvalidInputError(f"{', '.join(names)}: a host is named twice")
    return [known[name] for name in names] or list(known.values())


def host_environment(state: State, host: HostState) -> dict[str, str]:
    """What every program on a host gets, beside this process's own environment."""
    env = {"GLOO_SOCKET_IFNAME": DATA_INTERFACE, "INA_HOST": host.address}
    if state.controller:
        env["INA_CONTROLLER"] = state.controller
    return env


def rank_environment(state: State, hosts: Sequence[HostState], rank: int) -> dict[str, str]:
    """For a rank itself (``env://``), and for torchrun, which reads its options from PET_*."""
    master, world = hosts[0].address, str(len(hosts))
    return {
        **host_environment(state, hosts[rank]),
        "MASTER_ADDR": master,
        "MASTER_PORT": str(MASTER_PORT),
        "RANK": str(rank),
        "WORLD_SIZE": world,
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
        "PET_NNODES": world,
        "PET_NODE_RANK": str(rank),
        "PET_NPROC_PER_NODE": "1",
        "PET_MASTER_ADDR": master,
        "PET_MASTER_PORT": str(MASTER_PORT),
    }


def run_job(
    state: State,
    hosts: Sequence[HostState],
    command: Sequence[str],
    *,
    timeout_s: float,
    on_text: Callable[[str], object],
    check: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Runs ``command`` on each host, rank 0 on the first; logs are ``job.HOST.log`` in the folder.

    ``on_text`` gets what rank 0 prints; ``check`` is called while it runs. Returns seconds and
    logs. Raises :class:`JobFailedError`, :class:`DeadlineError`; then no rank runs any more.
    """
    folder = Path(state.folder)
    started = time.monotonic()
    ranks: list[Logged] = []
    mark = uuid.uuid4().hex
    try:
        for rank, host in enumerate(hosts):
            log = folder / f"job.{host.name}.log"
            ranks.append(_start(state, hosts, rank, log, command, mark))
        _await(ranks, started + timeout_s, timeout_s, _Tail(ranks[0].log, on_text), check)
    finally:
        for process in ranks:
            process.process.terminate()
        for process in ranks:
            process.stop()
        _kill_marked([host.namespace for host in hosts], mark)
    return {
        "seconds": time.monotonic() - started,
        "ranks": [
            {"rank": rank, "host": host.name, "log": str(process.log)}
            for rank, (host, process) in enumerate(zip(hosts, ranks, strict=True))
        ],
    }


def _start(
    state: State,
    hosts: Sequence[HostState],
    rank: int,
    log: Path,
    command: Sequence[str],
    mark: str,
) -> Logged:
    env = {k: v for k, v in environment({_MARK: mark}).items() if k not in _OTHERS_SETTINGS}
    env.setdefault("OMP_NUM_THREADS", "1")  # the hosts share this machine's cores
    env.setdefault("INA_STATS_DIR", state.folder)
    env |= rank_environment(state, hosts, rank)
    what = f"rank {rank} on {hosts[rank].name}"
    return Logged(what, hosts[rank].namespace, command, log, env)


def _kill_marked(spaces: list[str], mark: str) -> None:
    """Ends what is left of a job; others may have processes in the same namespaces."""
    wanted = f"{_MARK}={mark}".encode()
    deadline = time.monotonic() + _KILL_S
    while True:
        left = [pid for pid in processes(spaces) if wanted in _environ(pid)]
        if not left:
            return
        if time.monotonic() >= deadline:
            raise UnavailableError(f"processes {', '.join(map(str, left))} of the job do not end")
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(_POLL_S)


def _environ(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:  # it has just ended
        return []


def _await(
    ranks: Sequence[Logged],
    deadline: float,
    timeout_s: float,
    tail: _Tail,
    check: Callable[[], None],
) -> None:
    failed: Logged | None = None
    waiting = Waiting()
    while running := [rank for rank in ranks if rank.process.poll() is None]:
        check()
        tail.follow()
        waiting.look([it.what for it in ranks if it not in running], [it.what for it in running])
        if failed is None:
            failed = next((rank for rank in ranks if rank.process.poll()), None)
            if failed is not None:
                deadline = min(deadline, time.monotonic() + OTHERS_GRACE_S)
        if time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    tail.follow()
    failed = failed or next((rank for rank in ranks if rank.process.poll()), None)
    if failed is not None:
        code = failed.process.poll()
        assert code is not None
        raise JobFailedError(f"{failed.what}: {describe(code)}: {last_line(failed.log)}")
    late = [f"{rank.what} (see {rank.log})" for rank in running]
    if late:
        raise DeadlineError(f"not done after {timeout_s:g} s: {', '.join(late)}")


class _Tail:
    """Hands on what a log has got since the last time."""

    def __init__(self, log: Path, on_text: Callable[[str], object]) -> None:
        self._log, self._on_text, self._seen = log, on_text, 0

    def follow(self) -> None:
        with self._log.open("rb") as source:
            source.seek(self._seen)
            new = source.read()
        whole = new[: new.rfind(b"\n") + 1]  # a line's rest comes next time
        if whole:
            self._seen += len(whole)
            self._on_text(whole.decode("utf-8", "replace"))


def exec_on(state: State, node: str, command: Sequence[str]) -> None:
    """Becomes ``command`` on a host, or in ``net`` with the switches and the controller.

    Raises :class:`InvalidInputError`: no such node; it does not return otherwise.
    """
    if node == "net" or node in state.switches:
        space, env = state.net, {"INA_CONTROLLER": state.controller} if state.controller else {}
    else:
        host = choose_hosts(state, [node])[0]
        space, env = host.namespace, host_environment(state, host)
    sys.stdout.flush()
    words = within(space, command)
    os.execvpe(words[0], words, environment(env))
