"""Two racks of soft switches that reach each other by their UDP ports; no namespaces, no root."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager

from ina.controller.app import ControllerApp
from ina.controller.config import make_config
from ina.host import Session, WorkerOptions
from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch

NAMES = ("leaf1", "leaf2", "spine")


RACKS = {"127.0.1.1": "leaf1", "127.0.1.2": "leaf1", "127.0.2.1": "leaf2"}
"""By host."""


LONELY = "127.0.3.1"


TIMEOUT_S = 60.0


@asynccontextmanager
async def two_racks(
    loss: float = 0.0,
) -> AsyncIterator[tuple[ControllerApp, dict[str, SoftSwitch]]]:
    """Without ``ports``: every link and host is behind the switch's one socket.

    ``loss``: of each packet that a switch gets or sends.
    """
    with ExitStack() as stack:
        switches = {
            name: stack.enter_context(
                SoftSwitch([UdpPort(1, f"127.0.9.{number}", 0)], loss_rate=loss, loss_seed=number)
            )
            for number, name in enumerate((*NAMES, "island"), 1)
        }
        tables = []
        for name, switch in switches.items():
            host, port = switch.udp_address(1)
            tables.append(
                {"name": name, "grpc_addr": switch.grpc_addr, "values": 64, "data_host": host}
                | {"data_udp_port": port}
            )
        config = make_config(
            {
                "listen": "127.0.0.1:0",
                "switch": tables,
                "link": [{"switches": [leaf, "spine"]} for leaf in NAMES[:2]],
                "host": [
                    {"address": address, "switch": switch}
                    for address, switch in {**RACKS, LONELY: "island"}.items()
                ],
            },
            "test",
        )
        async with ControllerApp(config) as app:
            yield app, switches


async def ask(app: ControllerApp) -> pb2.ShowFabricReply:
    def call() -> pb2.ShowFabricReply:
        with open_channel(app.listen_addr) as channel:
            return OperatorStub(channel).ShowFabric(pb2.ShowFabricRequest(), timeout=TIMEOUT_S)

    return await asyncio.to_thread(call)


async def together(
    app: ControllerApp, hosts: list[str], work: Callable[[Session, int], object]
) -> list[object]:
    """A session a host, at once; what each ``work`` returned, or the error."""

    def run(rank: int) -> object:
        with Session.join(
            app.listen_addr,
            "sum",
            rank,
            len(hosts),
            WorkerOptions(host=hosts[rank], timeout_s=TIMEOUT_S),
        ) as session:
            return work(session, rank)

    each = (asyncio.to_thread(run, rank) for rank in range(len(hosts)))
    return list(await asyncio.gather(*each, return_exceptions=True))
