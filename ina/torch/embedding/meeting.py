"""How the ranks of a group find each other's services, and see that they mean the same tables."""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist

from ina.embed import frames
from ina.embed.errors import HostsDifferError, TooLittleMemoryError
from ina.embed.memory import check_memory
from ina.embed.metrics import ServiceCollector
from ina.embed.service import Door, Service
from ina.embed.sharding import Table, how, place
from ina.embed.start import normal_rows
from ina.extension.embed import GroupConfig, Optimizer
from ina.host import metrics
from ina.host.own_addresses import towards
from ina.protocol.peer import Peer
from ina.torch.embedding.gathering import gathered
from ina.torch.embedding.served import Meeting, Served, attach
from ina.torch.env import Settings

metrics.COLLECTORS.append(ServiceCollector())
_log = logging.getLogger(__name__)
_LOOPBACK = "127."
_HERE = "127.0.0.1"


@dataclass(frozen=True)
class _Said:
    """What a rank tells the others."""

    tables: tuple[Table, ...]
    place: tuple[str, int]
    key: int
    seed: int


def start(tables: Sequence[Table], group: dist.ProcessGroup | None, patience_s: float) -> Service:
    """This rank's service, once those of all ranks of the group have their rows. Collective.

    Without a process group, the rank is alone. `patience_s`: without a word of another rank.

    Raises on every rank: TableError; HostsDifferError, ranks name other tables, or addresses that
    do not reach each other; TooLittleMemoryError, of one of them. Where ``INA_METRICS`` asks for an
    endpoint: MetricsAddressError, MetricsListenError, of this rank.
    """
    is_alone = not dist.is_initialized()
    rank = 0 if is_alone else dist.get_rank(group)
    hosts = 1 if is_alone else dist.get_world_size(group)
    place(tables, hosts)  # what is wrong with them is said before anybody waits
    metrics.start_from_environ()
    settings = Settings.from_environ()
    address = _own_address(settings)
    door = Door(address)
    seed = int(torch.randint(2**62, ()).item())
    own = _Said(tuple(tables), door.peer.place, secrets.randbits(64), seed)
    said = gathered(own, hosts, group)
    _check_same(said)
    meeting = Meeting(rank, hosts, group, said[0].key, [Peer.at(one.place) for one in said])
    served = attach(settings.embed, address, meeting)
    service = _begin(served, door, tables, settings, patience_s)
    for number, table in enumerate(tables):
        service.write(number, normal_rows(said[0].seed, number, service.rows(number), table.dim))
        _log.info("table %r lies %s", table.name, how(service.specs[number]))
    gathered(None, hosts, group)  # nobody asks before all have their rows
    return service


def _begin(
    served: Served, door: Door, tables: Sequence[Table], settings: Settings, patience_s: float
) -> Service:
    """This rank's service, and the one that it tends."""
    meeting, specs = served.meeting, served.place(tables)
    peers, names = served.all_peers, [table.name for table in tables]
    config = GroupConfig(
        key=meeting.key,
        host=meeting.rank,
        hosts=len(peers),
        askers=meeting.ranks,
        tables=specs,
        optimizer=Optimizer(),
    )
    _check_memory(config, meeting)
    served.begin(
        frames.Begin(
            key=meeting.key,
            host=-1,
            hosts=len(peers),
            askers=meeting.ranks,
            tables=[(one.rows, one.dim, one.first_owner, one.owners) for one in specs],
            names=names,
            peers=[peer.place for peer in peers],
            patience_s=patience_s,
            loss_rate=settings.loss_rate,
            loss_seed=settings.loss_seed + meeting.ranks + meeting.rank,
        )
    )
    return Service(
        door,
        config,
        peers,
        patience_s=patience_s,
        loss_rate=settings.loss_rate,
        loss_seed=settings.loss_seed + meeting.rank,
        names=names,
        attached=[served.tended] if served.tended is not None else [],
    )


def _own_address(settings: Settings) -> str:
    """As the backend's: INA_HOST, or the one on the way to where the ranks met."""
    return (
        Settings.from_environ().host
        or towards(os.environ.get("MASTER_ADDR", "127.0.0.1"))
        or "127.0.0.1"
    )


def _check_same(said: Sequence[_Said]) -> None:
    for rank, one in enumerate(said):
        if one.tables != said[0].tables:
            raise HostsDifferError(f"ranks 0 and {rank} have other tables, or in another order")
        if one.place[0].startswith(_LOOPBACK) != said[0].place[0].startswith(_LOOPBACK):
            raise HostsDifferError(
                f"ranks 0 and {rank} are at {said[0].place[0]} and {one.place[0]}: say by INA_HOST"
                " where others reach them"
            )


def _check_memory(config: GroupConfig, meeting: Meeting) -> None:
    problem = ""
    try:
        check_memory(config.tables, config.hosts, config.host, config.optimizer)
    except TooLittleMemoryError as error:
        problem = str(error)
    for one in gathered(problem, meeting.ranks, meeting.group):
        if one:
            raise TooLittleMemoryError(one)
