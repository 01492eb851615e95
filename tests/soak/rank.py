"""One rank of a soak, in a process of its own: sums until all agree to end, or until it fails."""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from ina.errors import InaError
from ina.host import Session, WorkerOptions
from ina.host import udp as host_udp
from ina.protocol.peer import Peer
from tests.soak.sums import cases

WORKERS = 4
VALUES = 64
JOIN_TIMEOUT_S = 20.0
OP_TIMEOUT_S = 20.0
_TELL_S = 0.2


@dataclass(frozen=True)
class Told:
    """What a rank says through its pipe, now and then and when it ends."""

    steps: int = 0
    """That it has finished, of its job."""
    checked: Counter[str] | None = None
    """Sums that it has checked since it said so last, by type and operation."""
    wrong: str = ""
    """A sum that is wrong."""
    ended: str = ""
    """The name of the error it ended with, or ``done``."""
    line: str = ""
    """That error's message."""
    ranks: tuple[int, ...] = ()
    """Whom the error names."""


@dataclass(frozen=True)
class Place:
    """Where a rank is, and whom it talks to."""

    controller: str
    own_host: str
    """Its address."""
    seen_host: str
    """The address from which its packets come to the switch."""
    folder: Path
    """For its log; the job ends itself once there is a file ``stop`` in it."""
    seed: int
    job: int
    """How many jobs there were before."""


class _SeenElsewhere(socket.socket):
    """A worker's socket, which says for its own the address from which the forwarder sends."""

    seen_host = ""

    def getsockname(self) -> Any:
        return (self.seen_host, super().getsockname()[1])


def work(place: Place, rank: int, pipe: Connection) -> None:
    """Joins, sums, checks and tells; the process ends with it."""
    with (place.folder / f"rank{rank}.log").open("ab") as log:
        os.dup2(log.fileno(), sys.stderr.fileno())
    for name in [name for name in os.environ if name.startswith("INA_")]:
        del os.environ[name]
    tell = _Teller(pipe)
    try:
        with mock.patch("ina.host.udp.open_socket", _opener(place)), _join(place, rank) as session:
            try:
                _sum(place, rank, session, tell)
            except InaError as error:  # said before it leaves, which may take a while
                tell.end(type(error).__name__, str(error), getattr(error, "ranks", ()))
    except InaError as error:
        tell.end(type(error).__name__, str(error), getattr(error, "ranks", ()))
    except Exception:
        tell.end("crashed", traceback.format_exc())


def _join(place: Place, rank: int) -> Session:
    return Session.join(
        place.controller,
        "soak",
        rank,
        WORKERS,
        WorkerOptions(
            host=place.own_host,
            transport="udp",
            timeout_s=JOIN_TIMEOUT_S,
            op_timeout_s=OP_TIMEOUT_S,
        ),
    )


def _opener(place: Place) -> Any:
    def opened(switch: Peer, own_host: str | None = None) -> Any:
        real = open_socket(switch, own_host)
        sock = _SeenElsewhere(fileno=real.detach())
        sock.seen_host = place.seen_host
        return sock

    open_socket = host_udp.open_socket
    return opened


def _sum(place: Place, rank: int, session: Session, tell: _Teller) -> None:
    step = 0
    while True:
        todo = cases(place.seed, place.job, step)
        wish = np.array([(place.folder / "stop").exists(), step], np.int32)
        vote = session.all_reduce(wish, async_op=True)
        handles = [session.all_reduce(c.part(rank), c.op, async_op=True) for c in todo]
        said = vote.wait()
        if not 0 <= said[0] <= WORKERS or said[1] != WORKERS * step:
            tell.wrong(f"rank {rank}, step {step}: the vote is {said.tolist()}")
        for case, handle in zip(todo, handles, strict=True):
            result = handle.wait()
            if fault := case.fault(result, WORKERS, VALUES):
                tell.wrong(f"rank {rank}, step {step}: {fault}")
            tell.checked[f"{case.dtype.name} {case.op}"] += 1
        tell.checked["int32 sum"] += 1
        step += 1
        tell.step(step)
        if said[0]:
            tell.end("done", "all ranks agreed to end")
            return


class _Teller:
    """Says what a rank has done, not more often than anybody wants to know."""

    def __init__(self, pipe: Connection) -> None:
        self.checked: Counter[str] = Counter()
        self._pipe = pipe
        self._steps = 0
        self._said_s = 0.0
        self._ended = False

    def step(self, steps: int) -> None:
        self._steps = steps
        if time.monotonic() - self._said_s > _TELL_S:
            self._say()

    def wrong(self, what: str) -> None:
        self._say(wrong=what)

    def end(self, name: str, line: str, ranks: tuple[int, ...] = ()) -> None:
        if not self._ended:  # what fails as it leaves is no other end
            self._ended = True
            self._say(ended=name, line=line, ranks=tuple(ranks))

    def _say(self, **more: Any) -> None:
        self._said_s = time.monotonic()
        told = Told(self._steps, self.checked, **more)
        self.checked = Counter()
        try:
            self._pipe.send(told)
        except BrokenPipeError:  # whoever wanted to know is gone, and would have ended it
            os._exit(1)
