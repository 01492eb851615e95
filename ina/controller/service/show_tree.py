"""The tree that a job is summed over, for people, with what its switches count of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from ina.controller.errors import SwitchError
from ina.controller.job import Job
from ina.controller.service.show import job_counters
from ina.controller.switches.switch import Switch
from ina.rpc import controller_pb2 as pb2

_log = logging.getLogger(__name__)

COUNTERS_S = 3.0
"""How long the answer waits for a switch's counters."""


async def read_counters(
    job: Job, switches: Iterable[Switch]
) -> tuple[list[pb2.Counter], dict[str, str]]:
    """What all of a job's switches count of it; of each that does not say, by name, why."""
    asked = list(switches)
    found = await asyncio.gather(*(_read(job, switch) for switch in asked))
    counters: list[pb2.Counter] = []
    unread: dict[str, str] = {}
    for switch, of_switch in zip(asked, found, strict=True):
        if isinstance(of_switch, str):  # the rest is worth showing, now more than ever
            _log.warning("job %r is shown without its counters: %s", job.name, of_switch)
            unread[switch.name] = of_switch
        else:
            counters += of_switch
    return counters, unread


async def _read(job: Job, switch: Switch) -> list[pb2.Counter] | str:
    try:
        return await asyncio.wait_for(job_counters(switch, {job.number: job}), COUNTERS_S)
    except SwitchError as error:
        return str(error)
    except asyncio.TimeoutError:
        return f"switch {switch.config.grpc_addr}: no answer within {COUNTERS_S:g} s"


def show_tree(job: Job, unread: dict[str, str]) -> list[pb2.TreeNode]:
    """The root first, parents before their children; nothing of a job that is not placed yet."""
    if job.tree is None:
        return []
    shown = []
    for node in job.tree:
        taken = job.memory.get(node.switch)
        shown.append(
            pb2.TreeNode(
                switch=node.switch,
                parent=node.parent or "",
                level=job.tree.level(node),
                ranks=node.ranks,
                nodes=node.nodes,
                first_slot=0 if taken is None else taken.first,
                slots=0 if taken is None else taken.slots,
                unread=unread.get(node.switch, ""),
            )
        )
    return shown
