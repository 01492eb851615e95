"""A job on the hosts of a running emulation: on each as many ranks as the file says."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina.emulate.errors import JobFailedError
from ina.emulate.namespaces import processes
from ina.emulate.processes import Logged, describe, environment, last_line, last_words
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


@dataclass(frozen=True)
class Seat:
    """A process of a job: one rank, or torchrun, which starts the ranks of its host."""

    host: HostState
    node: int
    """The host's number in the job."""
    rank: int
    """Of torchrun's: the first."""
    local_rank: int

    @property
    def log(self) -> str:
        """A file's name."""
        several = f".{self.local_rank}" if self.local_rank else ""
        return f"job.{self.host.name}{several}.log"

    def __str__(self) -> str:
        return f"rank {self.rank} on {self.host.name}"


def seats(hosts: Sequence[HostState], command: Sequence[str]) -> list[Seat]:
    """Who runs ``command``: host by host, and on one by one, but torchrun once a host."""
    found, first = [], 0
    for node, host in enumerate(hosts):
        here = 1 if _starts_ranks(command) else host.ranks
        found += [Seat(host, node, first + local, local) for local in range(here)]
        first += host.ranks
    return found


def _starts_ranks(command: Sequence[str]) -> bool:
    return Path(command[0]).name == "torchrun" or "torch.distributed.run" in command


def rank_environment(state: State, hosts: Sequence[HostState], seat: Seat) -> dict[str, str]:
    """For a rank itself (``env://``), and for torchrun, which reads its options from PET_*."""
    master, world = hosts[0].address, str(sum(host.ranks for host in hosts))
    return {
        **host_environment(state, seat.host),
        "MASTER_ADDR": master,
        "MASTER_PORT": str(MASTER_PORT),
        "RANK": str(seat.rank),
        "WORLD_SIZE": world,
        "LOCAL_RANK": str(seat.local_rank),
        "LOCAL_WORLD_SIZE": str(seat.host.ranks),
        "PET_NNODES": str(len(hosts)),
        "PET_NODE_RANK": str(seat.node),
        "PET_NPROC_PER_NODE": str(seat.host.ranks),
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
    """Runs ``command`` on each host, rank 0 on the first; logs are ``job.HOST.log`` in the folder,
    and ``job.HOST.1.log`` of its next rank.

    ``on_text`` gets what rank 0 prints; ``check`` is called while it runs. Returns seconds and
    logs. Raises :class:`JobFailedError`, :class:`DeadlineError`; then no rank runs any more.
    """
    folder = Path(state.folder)
    started = time.monotonic()
    ranks: list[Logged] = []
    mark = uuid.uuid4().hex
    try:
        for seat in seats(hosts, command):
            ranks.append(_start(state, hosts, seat, folder / seat.log, command, mark))
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
            {"rank": seat.rank, "host": seat.host.name, "log": str(folder / seat.log)}
            for seat in seats(hosts, command)
        ],
    }


def _start(
    state: State,
    hosts: Sequence[HostState],
    seat: Seat,
    log: Path,
    command: Sequence[str],
    mark: str,
) -> Logged:
    env = {k: v for k, v in environment({_MARK: mark}).items() if k not in _OTHERS_SETTINGS}
    env.setdefault("OMP_NUM_THREADS", "1")  # the hosts share this machine's cores
    env.setdefault("INA_STATS_DIR", state.folder)
    env |= rank_environment(state, hosts, seat)
    return Logged(str(seat), seat.host.namespace, command, log, env)


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
    if running:
        late = [f"{rank.what} (see {rank.log})" for rank in running]
        words = last_words(running[0].log)
        said = f"; {running[0].what} said last: {words}" if words else ""
        raise DeadlineError(f"not done after {timeout_s:g} s: {', '.join(late)}{said}")


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
