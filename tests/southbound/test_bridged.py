"""A job's packets through tables that BFRuntime has written: the sums are right, and counted."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ina.controller.app import ControllerApp
from ina.host import Session
from ina.rpc import controller_pb2 as pb2
from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from tests.southbound.bench import config_for
from tests.worlds.fakes.tofino_bridge import BridgedTofino
from tests.worlds.fakes.workers import workers_of

ELEMS = 10_000
WORLD = 3


def work(address: str, name: str, rank: int) -> tuple[npt.NDArray[np.int32], pb2.ShowSwitchReply]:
    with (
        Session.join(address, name, rank, WORLD) as session,
        workers_of(address) as operator,
    ):
        total = session.all_reduce(np.arange(ELEMS, dtype=np.int32) * (rank + 1))
        total = session.all_reduce(total)
        return total, operator.show()


@pytest.mark.parametrize("turns", [2])
async def test_sums_through_what_bfruntime_wrote(sde: Path, turns: int) -> None:
    def job(address: str, name: str) -> None:
        with ThreadPoolExecutor(WORLD) as pool:
            done = list(pool.map(lambda rank: work(address, name, rank), range(WORLD)))
        expected = np.arange(ELEMS, dtype=np.int32) * (1 + 2 + 3) * WORLD
        for total, _ in done:
            np.testing.assert_array_equal(total, expected)
        packets = 2 * -(-ELEMS // 64)
        shown = max((reply for _, reply in done), key=lambda reply: len(reply.counters))
        counts = {(c.name, c.label): c.packets for c in shown.counters}
        # Besides, the first window's exponents; but not the former job's.
        assert packets <= counts["job_results", f"job {name}"] < 2 * packets
        assert counts["job_contributions", f"job {name}"] >= WORLD * packets
        assert counts["member_packets", f"job {name} rank 0"] >= packets
        assert counts["drops", "member"] == 0

    with SoftSwitch([UdpPort(1)], grpc_addr="127.0.0.1:0") as soft:
        tofino = BridgedTofino(soft.grpc_addr)
        host, udp_port = soft.udp_address(1)
        switch = {"data_host": host, "data_udp_port": udp_port, "data_port": 1}
        try:
            async with ControllerApp(config_for(tofino, switch)) as app:
                for turn in range(turns):  # counters begin at 0 for each
                    await asyncio.to_thread(job, app.listen_addr, f"turn{turn}")
                assert (await app.show()).slots_used == 0
        finally:
            tofino.close()
