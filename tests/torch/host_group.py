"""The ranks of a job on hosts of several ranks, and a node on each such host.

One machine stands for several hosts: each has its loopback address.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from torch._C._distributed_c10d import HashStore

from ina.controller.app import ControllerApp
from ina.host import Session, WorkerOptions
from ina.torch.host_node import LocalNode
from tests.worlds.processes.two_racks import TIMEOUT_S

HOSTS = ("127.0.1.1", "127.0.1.1", "127.0.1.2", "127.0.2.1", "127.0.2.1", "127.0.2.1")
"""By rank: rank 2 is alone on its host. The racks are those of ``two_racks``."""

Work = Callable[[Session, int], object]


class Group:
    """The ranks of one job, each in a thread, and their hosts' nodes."""

    def __init__(
        self, hosts: Sequence[str], op_timeout_s: float = TIMEOUT_S, dscp: Sequence[int] = ()
    ) -> None:
        self.hosts = hosts
        self.dscp = dscp or [0] * len(hosts)
        self.op_timeout_s = op_timeout_s
        self.store = HashStore()
        self.nodes: dict[int, LocalNode] = {}

    def node(self, rank: int) -> LocalNode | None:
        """As :func:`ina.torch.host_node.find` gives it, were these several machines."""
        ranks = [it for it, host in enumerate(self.hosts) if host == self.hosts[rank]]
        if len(ranks) == 1:
            return None
        hosts = len(set(self.hosts))
        node = LocalNode(self.store, rank, ranks, hosts, TIMEOUT_S, even_near=True)
        self.nodes[rank] = node
        return node

    async def together(self, app: ControllerApp, work: Work) -> list[object]:
        """What ``work`` returned by rank, or the error."""

        def run(rank: int) -> object:
            node = self.node(rank)
            try:
                with Session.join(
                    app.listen_addr,
                    "job",
                    rank,
                    len(self.hosts),
                    WorkerOptions(
                        host=self.hosts[rank],
                        node=node,
                        timeout_s=TIMEOUT_S,
                        op_timeout_s=self.op_timeout_s,
                        dscp=self.dscp[rank],
                    ),
                ) as session:
                    return work(session, rank)
            finally:
                if node is not None:
                    node.close(TIMEOUT_S)

        loop = asyncio.get_running_loop()
        # Threads of their own: asyncio's are few, and work asks the controller from one of those.
        with ThreadPoolExecutor(len(self.hosts)) as threads:
            each = (loop.run_in_executor(threads, run, rank) for rank in range(len(self.hosts)))
            return list(await asyncio.gather(*each, return_exceptions=True))
