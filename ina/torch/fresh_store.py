"""A part of the store that no process of an earlier attempt has written to.

torchrun starts all workers again when one has died, and may give them the store of the attempt
before (torch 2.13 with the c10d rendezvous). A fast rank would find there the addresses of
processes that are gone. The number of the attempt does not help: on several hosts each agent counts
for itself (pytorch issue 135712). So the ranks shake hands: what is new for both sides is from now.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from datetime import timedelta

from torch._C._distributed_c10d import PrefixStore, Store

from ina.torch.errors import RendezvousError

_POLL_S = 0.01


def fresh(store: Store, rank: int, size: int, timeout: timedelta) -> Store:
    """``store`` as it is, or under torchrun a part of it for these processes alone.

    All ranks call it. Raises :class:`RendezvousError` if they have not within ``timeout``.
    """
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") != "True":
        return store
    mine, meeting = secrets.token_hex(8), PrefixStore("ina/fresh", store)
    deadline = time.monotonic() + timeout.total_seconds()
    try:
        if rank == 0:
            _welcome(meeting, mine, size, deadline)
            return PrefixStore(f"ina/{mine}", store)
        return PrefixStore(f"ina/{_introduce(meeting, mine, rank, deadline)}", store)
    except TimeoutError as error:
        raise RendezvousError(f"{error} within {timeout.total_seconds():g} s") from None


def _welcome(store: Store, mine: str, size: int, deadline: float) -> None:
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

    _poll(all_have_read, deadline, lambda: f"ranks {list(answered)} did not come")


def _introduce(store: Store, mine: str, rank: int, deadline: float) -> str:
    """Another rank's side; returns rank 0's name."""
    store.set(f"hello/{rank}", mine)
    found: list[str] = []

    def is_welcome() -> bool:
        if store.check([f"welcome/{rank}"]):
            name, leader = store.get(f"welcome/{rank}").decode().split()
            if name == mine:
                found.append(leader)
        return bool(found)

    _poll(is_welcome, deadline, lambda: "rank 0 did not come")
    store.set(f"read/{found[0]}/{rank}", "")
    return found[0]


def _poll(is_so: Callable[[], bool], deadline: float, what: Callable[[], str]) -> None:
    while not is_so():
        if time.monotonic() >= deadline:
            raise TimeoutError(what())
        time.sleep(_POLL_S)
