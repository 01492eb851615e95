"""How the workers of a group find one controller and one job name."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass
from datetime import timedelta

from torch._C._distributed_c10d import Store
from torch.distributed import DistStoreError

from ina.errors import InaError
from ina.torch.embedded import HOST
from ina.torch.env import Settings
from ina.torch.errors import RendezvousError, SettingError

_KEY = "ina/meeting"


@dataclass(frozen=True)
class Meeting:
    """What all workers of a group agreed on."""

    controller: str
    job: str
    embedded_here: bool
    """This process holds the embedded switch for this group and must release it."""


_known_controllers: list[str] = []
"""Controllers of this process's living groups, oldest first; sub-groups use the same one."""


def meet(store: Store, rank: int, sub_group: str, settings: Settings, timeout_s: float) -> Meeting:
    """Rank 0 chooses controller and job and tells the others through the store.

    Raises :class:`RendezvousError` on every rank if rank 0 could not start a switch, or did not
    answer within ``timeout_s``; on rank 0 the original error is its cause. ``sub_group`` is the
    name of a sub-group, and empty for the default group.
    """
    if rank == 0:
        meeting = _lead(store, sub_group, settings)
    else:
        meeting = _follow(store, settings, timeout_s)
    _known_controllers.append(meeting.controller)
    return meeting


def part(meeting: Meeting, leave_timeout_s: float) -> None:
    """Undo :func:`meet`; where the embedded switch runs, wait for the others to leave first."""
    _known_controllers.remove(meeting.controller)
    if meeting.embedded_here:
        HOST.release(leave_timeout_s)


def _lead(store: Store, sub_group: str, settings: Settings) -> Meeting:
    embedded = False
    try:
        controller = settings.controller
        if controller is None and HOST.current() is None and _known_controllers:
            controller = _known_controllers[0]
        if controller is None:
            _check_one_host(settings)
            controller = HOST.acquire(settings)
            embedded = True
    except Exception as error:
        store.set(_KEY, json.dumps({"error": str(error)}))
        if isinstance(error, InaError):
            raise
        raise RendezvousError(f"rank 0 could not start the embedded switch: {error}") from error
    job = _job_name(sub_group, settings)
    store.set(_KEY, json.dumps({"controller": controller, "job": job}))
    return Meeting(controller, job, embedded)


def _follow(store: Store, settings: Settings, timeout_s: float) -> Meeting:
    try:
        store.wait([_KEY], timedelta(seconds=timeout_s))
    except DistStoreError as error:
        raise RendezvousError(
            f"rank 0 named no controller within {timeout_s:g} s: {error}"
        ) from error
    said = json.loads(store.get(_KEY))
    if "error" in said:
        raise RendezvousError(f"rank 0 could not start the group: {said['error']}")
    if settings.controller is not None and settings.controller != said["controller"]:
        raise SettingError(
            f"INA_CONTROLLER={settings.controller} here, but rank 0 uses {said['controller']}"
        )
    return Meeting(said["controller"], said["job"], embedded_here=False)


def _job_name(sub_group: str, settings: Settings) -> str:
    """``INA_JOB`` for the default group, ``INA_JOB/<name>`` for a sub-group."""
    base = settings.job or f"torch-{secrets.token_hex(4)}"
    return f"{base}/{sub_group}" if sub_group else base


def _check_one_host(settings: Settings) -> None:
    """Refuse a loopback switch for workers on several hosts (torchrun tells how many are here)."""
    here, world = os.environ.get("LOCAL_WORLD_SIZE"), os.environ.get("WORLD_SIZE")
    if settings.host is None and here and world and here != world:
        raise SettingError(
            f"{here} of {world} workers run on this host: set INA_CONTROLLER to a running"
            " controller, or INA_HOST to this host's IPv4 address for an embedded one"
        )
