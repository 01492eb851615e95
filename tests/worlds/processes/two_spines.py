"""Two leaves and two spines of soft switches, whose jobs all have a forest that the test chose."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from ipaddress import IPv4Address

from ina.controller.app import ControllerApp
from ina.controller.config import make_config
from ina.controller.jobs.placement import Placement
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.trees.endpoint import Endpoint
from ina.trees.forest import Forest
from ina.trees.tree import Node, Tree
from tests.worlds.processes.controllers import coordinator
from tests.worlds.processes.two_racks import TIMEOUT_S, ask

LEAVES, SPINES = ("leaf1", "leaf2"), ("spine1", "spine2")


HOSTS = {f"127.0.{leaf}.{number}": f"leaf{leaf}" for leaf in (1, 2) for number in (1, 2)}
"""By rank: two behind each leaf."""


PORT = 1
"""Every switch's one socket, which reaches everybody."""


SLOTS, CHUNK = 64, 64


def over(spine: str, racks: Sequence[tuple[int, ...]] = ((0, 1), (2, 3))) -> Tree:
    """Both leaves, with these ranks, below one of the spines."""
    leaves = (
        Node(name, ranks, parent=spine, parent_port=PORT)
        for name, ranks in zip(LEAVES, racks, strict=True)
    )
    return Tree((Node(spine, (), LEAVES, (PORT, PORT)), *leaves))


class Chosen:
    """A placement that has chosen."""

    is_known_early = False

    def __init__(self, nearest: Placement, forest: Forest) -> None:
        self._nearest, self._forest = nearest, forest

    def switch_of(self, addresses: Sequence[IPv4Address]) -> str:
        return self._nearest.switch_of(addresses)

    def port_to(self, switch: str, address: IPv4Address) -> int:
        return self._nearest.port_to(switch, address)

    def forest(self, job: str, endpoints: Mapping[int, Endpoint]) -> Forest:
        return self._forest


@asynccontextmanager
async def two_spines(forest: Forest, loss: float = 0.0) -> AsyncIterator[ControllerApp]:
    """A controller over them, whose jobs are all summed over ``forest``.

    ``loss``: of each packet that a switch gets or sends.
    """
    with ExitStack() as stack:
        tables = []
        for number, name in enumerate((*LEAVES, *SPINES), 1):
            ports = [UdpPort(PORT, f"127.0.9.{number}", 0)]
            switch = stack.enter_context(SoftSwitch(ports, loss_rate=loss, loss_seed=number))
            host, port = switch.udp_address(PORT)
            tables.append(
                {"name": name, "grpc_addr": switch.grpc_addr, "values": CHUNK, "data_host": host}
                | {"data_udp_port": port}
            )
        tables_of_hosts = [{"address": host, "switch": leaf} for host, leaf in HOSTS.items()]
        config = {
            "listen": "127.0.0.1:0",
            "switch": tables,
            "link": [{"switches": [leaf, spine]} for leaf in LEAVES for spine in SPINES],
            "host": tables_of_hosts,
            "jobs": {"slots": SLOTS},
            "routing": {"moves": 0},  # a forest that a test chose stays, be another one faster
        }
        async with ControllerApp(make_config(config, "test")) as app:
            registry = coordinator(app).registry
            registry.placement = Chosen(registry.placement, forest)
            yield app


class Shown:
    """What the fabric shows while a job runs; to be asked for by one of its ranks."""

    def __init__(self, app: ControllerApp) -> None:
        self._app, self._loop = app, asyncio.get_running_loop()

    def __call__(self) -> list[pb2.TreeNode]:
        asked = asyncio.run_coroutine_threadsafe(ask(self._app), self._loop)
        (job,) = asked.result(TIMEOUT_S).jobs
        return list(job.nodes)
