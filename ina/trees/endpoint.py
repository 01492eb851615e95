"""Where a worker is."""

from __future__ import annotations

from dataclasses import dataclass, field
from ipaddress import IPv4Address

from ina.protocol.peer import Peer
from ina.trees.tree import HostNode


@dataclass(frozen=True)
class Endpoint:
    """Where a worker is, as the switch that it sends to sees it, or its host's node."""

    peer: Peer
    switch_port: int
    results_group: IPv4Address | None = None
    """Where it listens for results by IP multicast; None: it wants results of its own."""
    process: str = field(default="", compare=False)
    """Its host and process id, for people; not stored: it says it again with each heartbeat."""
    switch: str = field(default="", compare=False)
    """Where it sends, by name, as it was told; not stored: the job's tree says it."""
    node: HostNode | None = field(default=None, compare=False)
    """What adds up on its host; None: it sends to the switch. Not stored: the tree says it."""
    aggregator: HostNode | None = field(default=None, compare=False)
    """What its process runs to make the job's results, in mode ``shared``; None: nothing."""

    @property
    def at_switch(self) -> Endpoint:
        """Where its part comes from as a switch sees it: its host's node, where it has one."""
        if self.node is None:
            return self
        return Endpoint(
            self.node.peer,
            self.node.switch_port,
            process=self.process,
            switch=self.switch,
            node=self.node,
        )

    def __str__(self) -> str:
        return self.peer.text(self.process)
