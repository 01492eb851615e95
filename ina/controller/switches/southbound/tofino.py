"""A Tofino over BFRuntime, with what the controller's file says of it: its program, ports, mirrors.

The SDE loads the program; here it is only found, and compared with what the controller writes.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from ipaddress import IPv4Address
from typing import Any

import grpc

from ina.controller.config import Config, SwitchConfig
from ina.controller.config.tofino import MirrorConfig
from ina.controller.job import Job, JobSpec
from ina.controller.switches.plan import FIRST_GROUP, epoch_mark, own_address, plan_job
from ina.controller.switches.southbound.ports import Ports
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.tables.bfrt.refusals import Refusals
from ina.tables.bfrt.sde import load_client
from ina.tables.bfrt.session import BfrtSession
from ina.tables.values import Entry, PortState
from ina.trees.endpoint import Endpoint
from ina.trees.forest import forest_of
from ina.trees.mapping import Mapping as JobMapping
from ina.trees.slots import SlotRange
from ina.trees.tree import Node, Tree

TABLE = "$mirror.cfg"
_NORMAL = "$normal"


class Mirrors:
    """The table. Methods block, and raise what the client raises."""

    def __init__(self, gc: Any, info: Any, target: Any, refusals: Refusals) -> None:
        self._gc, self._target, self._refusals = gc, target, refusals
        self._table = info.table_get(TABLE)

    def set_up(self, mirror: MirrorConfig, port: int) -> None:
        """Makes a session as configured, whether it is there or not. ``port``: its number."""
        gc = self._gc
        key = self._table.make_key([gc.KeyTuple("$sid", mirror.session)])
        data = self._table.make_data(
            [
                gc.DataTuple("$direction", str_val=mirror.direction.upper()),
                gc.DataTuple("$ucast_egress_port", port),
                gc.DataTuple("$ucast_egress_port_valid", bool_val=True),
                gc.DataTuple("$max_pkt_len", mirror.max_bytes),
                gc.DataTuple("$session_enable", bool_val=True),
            ],
            _NORMAL,
        )
        try:
            self._table.entry_add(self._target, [key], [data])
        except gc.BfruntimeRpcException as error:
            if not self._refusals.is_only(error, grpc.StatusCode.ALREADY_EXISTS):
                raise
            self._table.entry_mod(self._target, [key], [data])


_log = logging.getLogger(__name__)

_BUILD = re.compile(r"_(\d+)$")
_GROUPS = range(FIRST_GROUP, FIRST_GROUP + names.JOBS_TOTAL)


class TofinoSession(BfrtSession):
    """Use :meth:`of_config`; :meth:`close` ends it."""

    def __init__(self, gc: Any, config: Config, switch: SwitchConfig) -> None:
        """``gc``: the SDE's client module."""
        super().__init__(
            gc,
            switch.grpc_addr,
            switch.device_id,
            f"switch {switch.grpc_addr} device {switch.device_id}",
            client_id=switch.election_id,
            program=switch.program,
        )
        self._config = switch
        self._places = config.ports_of(switch)
        self._ports: Ports
        self._mirrors: Mirrors

    @classmethod
    async def of_config(
        cls, config: Config, switch: SwitchConfig, *, standby: bool = False
    ) -> TofinoSession:
        """Connects to one of the configuration's switches. See :meth:`BfrtSession.connect`."""
        session = cls(load_client(), config, switch)
        await session.connect(standby=standby)
        return session

    async def set_pipeline(self, *, anew: bool = False) -> bool:
        """Compares the program with what the controller writes, and sets up ports and mirrors."""
        self._check_program()
        await self._call("ports", self._set_up)
        return await super().set_pipeline(anew=anew)

    def port_number(self, name: str) -> int:
        """The device port of a front-panel name; after :meth:`set_pipeline`."""
        return self._ports.number(name)

    async def read_ports(self) -> list[PortState]:
        """The configured ports."""
        return await self._call("read ports", lambda: self._ports.read(self._config.port))

    def _learn(self, info: Any) -> None:
        super()._learn(info)
        place = (self._gc, info, self._target, self._refusals)
        self._ports, self._mirrors = Ports(*place), Mirrors(*place)

    def _check_program(self) -> None:
        """Whether the controller can drive it, and it is the one as far as its name tells.

        Raises :class:`SwitchError` with the first table, key, action or parameter that it lacks.
        """
        program, values = self._program, self._config.runs.values
        build = _BUILD.search(program.name)
        if build is not None and int(build[1]) != values:
            raise program.error(f"it has {build[1]} values a packet, switch.values is {values}")
        for entry in _written():
            program.key(entry.table, entry.match)
            program.data(entry.table, entry.action, entry.params)
        for counter in (*names.JOB_COUNTERS, names.DROPS):
            program.cell_key(counter, 0)

    def _set_up(self) -> None:
        """In the client's thread."""
        switch = self._config
        swept = self._multicast.sweep(_GROUPS)
        if swept:
            _log.warning("removed %d multicast nodes that were in no group", swept)
        self._ports.resolve(
            [*(port.port for port in switch.port), *(mirror.port for mirror in switch.mirror)]
        )
        self._ports.resolve(self._places)
        for port in switch.port:
            self._ports.set_up(port)
        for mirror in switch.mirror:
            self._mirrors.set_up(mirror, self._ports.number(mirror.port))


def _written() -> Iterator[Entry]:
    """An entry of every kind that the controller writes: of a root, and of a node below it."""
    leaf = Node("leaf", ranks=(0,), parent="root")
    tree = Tree((Node("root", nodes=("leaf",), ports=(1,)), leaf))
    slots = SlotRange(0, 2, 2)
    memory = {"root": slots, "leaf": slots}
    placed = JobMapping(1, (1,), forest_of(tree), memory, 1)
    job = Job(JobSpec("", 1), 1, 0.0, placed, epoch=1)
    job.members[0] = Endpoint(Peer(IPv4Address("10.0.0.1"), 1024), 1)
    somewhere = Peer(IPv4Address("10.0.0.2"), 1024, 1)
    for node in tree:
        plan = plan_job(job, node.switch, dict.fromkeys(("root", "leaf"), somewhere))
        for stage in plan.stages:
            yield from (item for item in stage if isinstance(item, Entry))
    yield epoch_mark(1)
    yield own_address(1)
