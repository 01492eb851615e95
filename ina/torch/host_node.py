"""How the ranks of a group that share a host come to have a node of their own there.

Each tells rank 0 where it runs, and rank 0 tells all of them who shares a host. Of each host's
ranks the lowest runs the soft switch, once the controller has said what job it is for; it tells the
others of it through the group's store.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from torch._C._distributed_c10d import Store

from ina import __version__
from ina.errors import InaError
from ina.host.errors import TransportError
from ina.host.node import NodePlace
from ina.protocol.peer import Peer
from ina.protocol.spec import MAX_WORKERS
from ina.rpc import controller_pb2 as pb2
from ina.rpc.ranks import ranks_text
from ina.torch.env import Settings
from ina.torch.errors import RendezvousError
from ina.torch.fresh_store import StoreWait

if TYPE_CHECKING:
    from ina.switch.host_node import HostNodeSwitch

_log = logging.getLogger("ina.torch")

_HOSTS = "ina/hosts"
_POLL_S = 0.05


class LocalNode:
    """One rank's part in the node of its host (:class:`ina.host.node.HostNode`)."""

    def __init__(
        self,
        store: Store,
        rank: int,
        ranks: Sequence[int],
        contributions: int,
        timeout_s: float,
        *,
        even_near: bool = False,
    ) -> None:
        """``ranks``: of the group, those that send to it; the first runs it. ``contributions``: of
        the whole group, that reach switches. ``even_near``: also where the switch is on this host,
        and no link is saved anything.
        """
        self.contributions = contributions
        self._store = store
        self._rank = rank
        self._ranks = tuple(ranks)
        self._timeout_s = timeout_s
        self._key = f"ina/node/{ranks[0]}"
        self._even_near = even_near
        self._switch: HostNodeSwitch | None = None
        self._opened: tuple[NodePlace | None, int, int] | None = None

    def again(self, number: int) -> LocalNode:
        """Its part in the node of a later incarnation of the job, or in that of a later try to
        join it; ``number``: of the incarnation, the same on all ranks.
        """
        ranks, forced = self._ranks, self._even_near
        other = LocalNode(
            self._store, self._rank, ranks, self.contributions, self._timeout_s, even_near=forced
        )
        other._key = f"ina/node/{ranks[0]}/{number}"
        return other

    def open(
        self, values: int, slots: int, own_host: str, switch_host: str, timeout_s: float
    ) -> NodePlace | None:
        """See :meth:`ina.host.node.HostNode.open`."""
        is_near = own_host == switch_host or switch_host.startswith("127.")
        if is_near and not self._even_near:
            return None
        if self._opened is not None:
            place, *sizes = self._opened
            if place is not None and sizes != [values, slots]:
                raise TransportError(
                    f"rank {self._rank}: its host's node was made for {sizes[0]} values a packet"
                    f" and {sizes[1]} slots, and the controller grants {values} and {slots} now"
                )
            return place
        if self._rank == self._ranks[0]:
            place = self._start(values, slots, own_host)
        else:
            place = self._follow(timeout_s)
        self._opened = place, values, slots
        return place

    def program(self, entities: Sequence[bytes], job: int) -> None:
        """See :meth:`ina.host.node.HostNode.program`."""
        assert self._switch is not None
        self._switch.program(entities, job)
        host, port = self._switch.uplink
        _log.warning(
            "ina: rank %d adds up what %s of this host send, and sends one contribution up from"
            " %s:%d; INA_HOST_NODE=0: each sends its own",
            *(self._rank, ranks_text(self._ranks), host, port),
        )

    def set_dscp(self, dscp: int) -> None:
        """See :meth:`ina.host.node.HostNode.set_dscp`."""
        assert self._switch is not None
        self._switch.set_dscp(dscp)

    def add_mapping(self, entities: Sequence[bytes], job: int) -> None:
        """See :meth:`ina.host.node.HostNode.add_mapping`."""
        assert self._switch is not None
        self._switch.add_mapping(entities, job)

    def end_change(self, *, is_new_used: bool) -> None:
        """See :meth:`ina.host.node.HostNode.end_change`."""
        if self._switch is not None:
            self._switch.end_change(is_new_used=is_new_used)

    def counts(self) -> pb2.NodeCounts | None:
        """See :meth:`ina.host.node.HostNode.counts`."""
        if self._switch is None:
            return None
        found = self._switch.counts()
        return pb2.NodeCounts(
            **{name: found.get(name, 0) for name in pb2.NodeCounts.DESCRIPTOR.fields_by_name}
        )

    def close(self, leave_timeout_s: float) -> None:
        """Ends it, after the ranks that send to it have gone; waits at most so long for them."""
        switch, self._switch = self._switch, None
        if switch is None:
            return
        with contextlib.suppress(RuntimeError):  # the store may be gone
            self._store.delete_key(self._key)
        deadline = time.monotonic() + leave_timeout_s
        while (left := switch.attached) and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        if left:
            _log.warning(
                "ina: rank %d stops its host's node although %d of its ranks have not left after"
                " %g s",
                *(self._rank, left, leave_timeout_s),
            )
        switch.close()

    def _start(self, values: int, slots: int, own_host: str) -> NodePlace | None:
        # Imported here: a worker alone on its host needs no soft switch.
        from ina.switch.host_node import UPLINK_PORT, HostNodeSwitch

        try:
            self._switch = HostNodeSwitch(values, slots, own_host)
        except InaError as error:
            self._store.set(self._key, json.dumps({"error": str(error)}))
            _log.warning(
                "ina: rank %d cannot run its host's node, so each of %s sends its own: %s",
                *(self._rank, ranks_text(self._ranks), error),
            )
            return None
        at = Peer.at(self._switch.uplink)
        place = NodePlace(self._rank, self._switch.shm, at, UPLINK_PORT)
        self._store.set(self._key, json.dumps({**vars(place), "peer": at.place}))
        return place

    def _follow(self, timeout_s: float) -> NodePlace | None:
        wait = StoreWait(f"rank {self._rank}", min(timeout_s, self._timeout_s))
        runner = f"rank {self._ranks[0]}"
        try:
            wait.until(
                lambda: self._store.check([self._key]),
                lambda: runner,
                "has not started the node of its host",
            )
        except RendezvousError as error:
            raise TransportError(f"rank {self._rank}: {error}") from None
        said = json.loads(self._store.get(self._key))
        return None if "error" in said else NodePlace(**{**said, "peer": Peer.at(said["peer"])})


def find(
    store: Store, rank: int, size: int, settings: Settings, timeout_s: float
) -> LocalNode | None:
    """This rank's part in its host's node; None: it is alone there, or does without.

    All ranks of the group call it. Raises :class:`RendezvousError`.
    """
    wait = StoreWait(f"rank {rank}", timeout_s)
    store.set(f"ina/host/{rank}", "" if settings.host_node is False else _identity())
    if rank == 0:
        store.set(_HOSTS, json.dumps(_groups(_collect(store, size, wait))))
    wait.until(lambda: store.check([_HOSTS]), lambda: "rank 0", "has not said who shares a host")
    groups = json.loads(store.get(_HOSTS))
    for ranks in groups:
        if rank in ranks and len(ranks) > 1:
            forced = settings.host_node is True
            return LocalNode(store, rank, ranks, len(groups), timeout_s, even_near=forced)
    return None


def _collect(store: Store, size: int, wait: StoreWait) -> list[str]:
    found: dict[int, str] = {}

    def all_are_there() -> bool:
        for rank in range(size):
            if rank not in found and store.check([f"ina/host/{rank}"]):
                found[rank] = store.get(f"ina/host/{rank}").decode()
        return len(found) == size

    def missing() -> str:
        return ranks_text([rank for rank in range(size) if rank not in found])

    wait.until(all_are_there, missing)
    return [found[rank] for rank in range(size)]


def _groups(identities: Sequence[str]) -> list[list[int]]:
    """Ranks by host, at most as many together as a switch adds up; who does without is alone."""
    by_host: dict[str, list[int]] = {}
    for rank, identity in enumerate(identities):
        by_host.setdefault(identity or f"alone {rank}", []).append(rank)
    return [
        ranks[first : first + MAX_WORKERS]
        for ranks in by_host.values()
        for first in range(0, len(ranks), MAX_WORKERS)
    ]


def _identity() -> str:
    """The same for processes that can share memory: this kernel, network namespace and user."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    namespace = os.stat("/proc/self/ns/net").st_ino
    return f"{boot}/{namespace}/{os.geteuid()}/{__version__}"
