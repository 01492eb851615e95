"""How the workers of a group find one controller and one job name."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from torch._C._distributed_c10d import Store

from ina.errors import InaError
from ina.protocol.spec import MAX_WORKERS, MAX_WORLD_SIZE
from ina.torch.embedded import HOST
from ina.torch.env import Settings
from ina.torch.errors import GroupSizeError, RendezvousError, SettingError
from ina.torch.fresh_store import StoreWait

_KEY = "ina/meeting"


@dataclass(frozen=True)
class Rendezvous:
    """What all workers of a group agreed on."""

    controller: str
    job: str
    embedded_here: bool
    """This process holds the embedded switch for this group and must release it."""
    embedded_with: int | None = None
    """Global rank of the process with the embedded switch; None: it is not an embedded one."""


_known: list[Rendezvous] = []
"""Those of this process's living groups, oldest first; sub-groups use the same controller."""


def meet(
    store: Store,
    ranks: Sequence[int],
    rank: int,
    sub_group: str,
    settings: Settings,
    timeout_s: float,
) -> Rendezvous:
    """Rank 0 of the group chooses controller and job and tells the others through the store.

    Raises :class:`RendezvousError` on every rank if rank 0 could not start a switch, or did not
    answer within ``timeout_s``; on rank 0 the original error is its cause. ``ranks`` are the
    group's global ranks, ``rank`` is this one's in the group. ``sub_group`` is the name of a
    sub-group, and empty for the default group.
    """
    if rank == 0:
        rendezvous = _lead(store, ranks, sub_group, settings)
    else:
        group = f"group {sub_group}" if sub_group else "the default group"
        wait = StoreWait(f"rank {rank} of {group}", timeout_s)
        rendezvous = _follow(store, settings, wait)
    _known.append(rendezvous)
    return rendezvous


def part(rendezvous: Rendezvous, leave_timeout_s: float) -> None:
    """Undo :func:`meet`; where the embedded switch runs, wait for the others to leave first."""
    _known.remove(rendezvous)
    if rendezvous.embedded_here:
        HOST.release(leave_timeout_s)


def _lead(store: Store, ranks: Sequence[int], sub_group: str, settings: Settings) -> Rendezvous:
    controller, embedded_with, here = settings.controller, None, False
    try:
        if controller is None and HOST.current() is None and _known:
            controller, embedded_with = _known[0].controller, _known[0].embedded_with
        if controller is None:
            _check_one_host(settings)
            _check_one_switch(len(ranks))
            controller, embedded_with, here = HOST.acquire(settings), ranks[0], True
    except Exception as error:
        store.set(_KEY, json.dumps({"error": str(error)}))
        if isinstance(error, InaError):
            raise
        raise RendezvousError(f"rank 0 could not start the embedded switch: {error}") from error
    job = _job_name(sub_group, settings)
    said = {"controller": controller, "job": job, "embedded_with": embedded_with}
    store.set(_KEY, json.dumps(said))
    return Rendezvous(controller, job, here, embedded_with)


def _follow(store: Store, settings: Settings, wait: StoreWait) -> Rendezvous:
    wait.until(lambda: store.check([_KEY]), lambda: "rank 0", "named no controller")
    said = json.loads(store.get(_KEY))
    if "error" in said:
        raise RendezvousError(f"rank 0 could not start the group: {said['error']}")
    if settings.controller is not None and settings.controller != said["controller"]:
        raise SettingError(
            f"INA_CONTROLLER={settings.controller} here, but rank 0 uses {said['controller']}"
        )
    return Rendezvous(said["controller"], said["job"], False, said["embedded_with"])


def _job_name(sub_group: str, settings: Settings) -> str:
    """``INA_JOB`` for the default group, ``INA_JOB/<name>`` for a sub-group."""
    base = settings.job
    if base is None and sub_group and _known:  # the name that the default group got
        base = _known[0].job.partition("/")[0]
    base = base or f"torch-{secrets.token_hex(4)}"
    return f"{base}/{sub_group}" if sub_group else base


def _check_one_switch(size: int) -> None:
    """Refuse more workers than the embedded switch has room for in a packet's bitmap."""
    if size > MAX_WORKERS:
        raise GroupSizeError(
            f"a group of {size} workers: the switch in rank 0's process sums at most {MAX_WORKERS};"
            f" set INA_CONTROLLER to a controller with several switches (up to {MAX_WORLD_SIZE})"
        )


def _check_one_host(settings: Settings) -> None:
    """Refuse a loopback switch for workers on several hosts (torchrun tells how many are here)."""
    here, world = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    if settings.host is None and here and world and here != world:
        raise SettingError(
            f"{here} of {world} workers run on this host: set INA_CONTROLLER to a running"
            " controller, or INA_HOST to this host's IPv4 address for an embedded one"
        )
