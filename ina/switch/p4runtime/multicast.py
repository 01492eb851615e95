"""Multicast groups of the packet replication engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from finsy.proto import p4r

from ina.switch.p4runtime.bits import decode
from ina.switch.p4runtime.status import exists, invalid, not_found, unimplemented
from ina.switch.pipeline import Pipeline

_PORT_BITS = 9  # v1model's egress_spec
_GROUP_BITS = 16  # v1model's mcast_grp
_INSTANCE_BITS = 16  # v1model's egress_rid


class MulticastStore:
    """The groups that were written; the caller holds the device's lock."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._groups: dict[int, p4r.MulticastGroupEntry] = {}

    def insert(self, entry: p4r.MulticastGroupEntry) -> None:
        """Add a group."""
        replicas = _replicas(entry)
        if entry.multicast_group_id in self._groups:
            raise exists(f"multicast group {entry.multicast_group_id} is there already")
        self._set(entry, replicas)

    def modify(self, entry: p4r.MulticastGroupEntry) -> None:
        """Replace a group's replicas."""
        replicas = _replicas(entry)
        self._require(entry.multicast_group_id)
        self._set(entry, replicas)

    def delete(self, entry: p4r.MulticastGroupEntry) -> None:
        """Remove a group."""
        _check_id(entry)
        self._require(entry.multicast_group_id)
        self._pipeline.set_multicast(entry.multicast_group_id, ())
        del self._groups[entry.multicast_group_id]

    def read(self, request: p4r.MulticastGroupEntry) -> Iterator[p4r.MulticastGroupEntry]:
        """One group, or all (id 0), as they were written."""
        if request.multicast_group_id == 0:
            yield from self._groups.values()
        elif request.multicast_group_id in self._groups:
            yield self._groups[request.multicast_group_id]

    def _require(self, group: int) -> None:
        if group not in self._groups:
            raise not_found(f"no multicast group {group}")

    def _set(self, entry: p4r.MulticastGroupEntry, replicas: list[tuple[int, int]]) -> None:
        self._pipeline.set_multicast(entry.multicast_group_id, replicas)
        stored = p4r.MulticastGroupEntry()
        stored.CopyFrom(entry)
        self._groups[entry.multicast_group_id] = stored


def _check_id(entry: p4r.MulticastGroupEntry) -> None:
    if not 0 < entry.multicast_group_id < 1 << _GROUP_BITS:
        raise invalid(f"multicast group {entry.multicast_group_id}: not in 1..65535")


def _replicas(entry: p4r.MulticastGroupEntry) -> list[tuple[int, int]]:
    _check_id(entry)
    return replicas_of(entry.replicas, f"multicast group {entry.multicast_group_id}")


def replicas_of(wanted: Iterable[p4r.Replica], what: str) -> list[tuple[int, int]]:
    """(port, instance) of each; a StatusError names ``what`` they are of."""
    replicas: list[tuple[int, int]] = []
    for replica in wanted:
        if len(replica.backup_replicas):
            raise unimplemented(f"{what}: backup replicas")
        # `egress_port` (a number) is how clients before P4Runtime 1.4 say it.
        if replica.WhichOneof("port_kind") == "port":
            port = decode(replica.port, _PORT_BITS, f"{what}, port")
        else:
            port = replica.egress_port
        if port >> _PORT_BITS or port == (1 << _PORT_BITS) - 1:
            raise invalid(f"{what}: port {port} is not in 0..510")
        if replica.instance >> _INSTANCE_BITS:
            raise invalid(f"{what}: instance {replica.instance} is not in 0..65535")
        if (port, replica.instance) in replicas:
            raise invalid(f"{what}: port {port}, instance {replica.instance} is there twice")
        replicas.append((port, replica.instance))
    return replicas
