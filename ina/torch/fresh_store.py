"""A part of the store that no earlier group has written to.

torchrun starts all workers again when one has died, and may give them the store of the attempt
before (torch 2.13 with the c10d rendezvous). A process that destroys its group and makes another
one finds the store of the first, and the same names in it. A fast rank would find there the
addresses of what is gone. The number of the attempt does not help: on several hosts each agent
counts for itself (pytorch issue 135712). So the ranks shake hands: what is new for both sides is
from now.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Callable
from datetime import timedelta

from torch._C._distributed_c10d import PrefixStore, Store

from ina.rpc.ranks import ranks_text
from ina.torch.errors import RendezvousError

_log = logging.getLogger("ina.torch")

_POLL_S = 0.01
_FIRST_WORD_S = 10.0
"""Longer than ranks that start together take to import what they need."""
_GROWTH = 3.0

_kept: list[Store] = []
"""That of the newest group that this process is rank 0 of, whose server runs here as a rule. Ranks
that make another group come to it while this process still waits for others to leave the old one;
freed with the old one, it would hang up on them."""


def fresh(store: Store, rank: int, size: int, timeout: timedelta, group: str = "0") -> Store:
    """A part of ``store`` for these processes and this group alone; ``group``: its name.

    All ranks call it. Says after ten seconds, and again at growing intervals, for whom it waits.
    Raises :class:`RendezvousError` if they have not come within ``timeout``.
    """
    mine, shared = secrets.token_hex(8), PrefixStore("ina/fresh", store)
    wait = StoreWait(f"rank {rank} of group {group}", timeout.total_seconds())
    if rank == 0:
        _kept[:] = [store]
        _welcome(shared, mine, size, wait)
        return PrefixStore(f"ina/{mine}", store)
    return PrefixStore(f"ina/{_introduce(shared, mine, rank, wait)}", store)


class StoreWait:
    """One rank's wait for what others write. In slices: the store's own would not hear Ctrl-C."""

    def __init__(self, who: str, timeout_s: float) -> None:
        self._who = who
        self._timeout_s = timeout_s
        self._began_s = time.monotonic()
        self._pause_s = self._word_s = _FIRST_WORD_S  # since the beginning

    def until(
        self, is_so: Callable[[], bool], whom: Callable[[], str], lacks: str = "did not come"
    ) -> None:
        """Raises :class:`RendezvousError` after the time-out: ``whom()`` and what it ``lacks``."""
        while not is_so():
            waited_s = time.monotonic() - self._began_s
            if waited_s >= self._timeout_s:
                raise RendezvousError(f"{whom()} {lacks} within {self._timeout_s:g} s")
            if waited_s >= self._word_s:
                self._pause_s *= _GROWTH
                self._word_s += self._pause_s
                _log.warning(
                    "ina: %s waits for %s to make the group: %.0f s so far, at most %.0f s",
                    *(self._who, whom(), waited_s, self._timeout_s),
                )
            time.sleep(_POLL_S)


def _welcome(store: Store, mine: str, size: int, wait: StoreWait) -> None:
    """Rank 0's side: answer each rank's newest name until it has read the answer."""
    answered = dict.fromkeys(range(1, size), "")

    def all_have_read() -> bool:
        for rank in list(answered):
            if store.check([f"read/{mine}/{rank}"]):
                del answered[rank]
            elif store.check([f"hello/{rank}"]):
                name = store.get(f"hello/{rank}").decode()  # may be of a process that is gone
                if name != answered[rank]:
                    store.set(f"welcome/{rank}", f"{name} {mine}")
                    answered[rank] = name
        return not answered

    wait.until(all_have_read, lambda: ranks_text(answered))


def _introduce(store: Store, mine: str, rank: int, wait: StoreWait) -> str:
    """Another rank's side; returns rank 0's name."""
    store.set(f"hello/{rank}", mine)
    found: list[str] = []

    def is_welcome() -> bool:
        if store.check([f"welcome/{rank}"]):
            name, leader = store.get(f"welcome/{rank}").decode().split()
            if name == mine:
                found.append(leader)
        return bool(found)

    wait.until(is_welcome, lambda: "rank 0")
    store.set(f"read/{found[0]}/{rank}", "")
    return found[0]
