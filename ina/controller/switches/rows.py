"""The rows of one node's tables: how each neighbour of a job is let in, and reached. Pure.

A neighbour is a worker, a switch below or the switch above; to the node's tables they are alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address

from ina.p4 import names
from ina.protocol.addresses import multicast_mac_of
from ina.protocol.spec import ALL_WORKERS, RESULTS_UDP_PORT, Kind
from ina.tables.values import Entry
from ina.trees.data_address import DataAddress
from ina.trees.endpoint import Endpoint
from ina.trees.mapping import Part

EPOCH_BITS = 16
"""Low bits of the epoch that the header carries and the tables match."""


@dataclass(frozen=True)
class Neighbour:
    """Whom a node exchanges a job's packets with."""

    address: IPv4Address
    udp_port: int
    mac: int
    port: int
    """The node's port that it is behind."""


def worker_at(at: Endpoint, port: int) -> Neighbour:
    """A worker, behind a port of this switch."""
    return Neighbour(at.address, at.udp_port, at.mac_address, port)


def switch_at(where: DataAddress, port: int) -> Neighbour:
    """Another switch, behind a port of this one."""
    return Neighbour(where.address, where.udp_port, where.mac, port)


def through(whom: Neighbour, routers: Mapping[int, int]) -> Neighbour:
    """The same, by way of the switch that routes behind that port, if one does."""
    return replace(whom, mac=routers.get(whom.port, whom.mac))


def member(part: Part, index: int, child: Neighbour, bits: int, *, is_set: bool) -> Entry:
    """Lets the packets of a child reach the job's slots. ``is_set``: each holds those of ``bits``
    that it names; else its one bit is all that it can hold.
    """
    action, param = names.ADMIT_MEMBER, "worker_bit"
    if is_set:
        action, param = names.ADMIT_SET, "worker_bits"
    match = _from(part, index, child, Kind.CONTRIBUTION)
    return Entry(names.MEMBERS, match, action, ((param, bits),))


def parent_member(part: Part, index: int, parent: Neighbour) -> Entry:
    """Takes results from the parent, whose child this node is with ``index``."""
    return Entry(names.MEMBERS, _from(part, index, parent, Kind.RESULT), names.ADMIT_PARENT, ())


def receiver(part: Part, index: int, child: Neighbour) -> Entry:
    """Where a child gets results."""
    return Entry(
        names.RECEIVERS, (("job", part.number), ("worker", index)), names.ADDRESS, _to(child)
    )


def shared_receiver(part: Part, group: IPv4Address) -> Entry:
    """Where one copy reaches all workers that share it."""
    return Entry(
        names.RECEIVERS,
        (("job", part.number), ("worker", ALL_WORKERS)),
        names.ADDRESS,
        (
            ("dst_mac", multicast_mac_of(group)),
            ("dst_addr", int(group)),
            ("dst_port", RESULTS_UDP_PORT),
        ),
    )


def owner(part: Part, index: int, port: int, level: int, full_bitmap: int) -> Entry:
    """Where a sum of the job's goes that another job puts out of a slot that they share.

    To the parent behind ``port``, whose child this node is with ``index``.
    """
    return Entry(
        names.OWNERS,
        (("epoch", part.epoch),),
        names.OWNER_IS,
        (
            ("job", part.number),
            ("job_index", part.number),
            ("full_bitmap", full_bitmap),
            ("parent_port", port),
            ("own_worker", index),
            ("own_level", level),
        ),
    )


def way_down(part: Part, way: int, index: int, child: Neighbour) -> Entry:
    """Where a result goes that is for one worker alone, whose path has ``way`` for this node."""
    return Entry(
        names.CHILDREN,
        (("job", part.number), ("way", way)),
        names.TO_CHILD,
        (("port", child.port), ("worker", index)),
    )


def low_epoch(epoch: int) -> int:
    """What the header carries of it."""
    return epoch & ((1 << EPOCH_BITS) - 1)


def _from(part: Part, index: int, whom: Neighbour, kind: Kind) -> tuple[tuple[str, int], ...]:
    return (
        ("ingress_port", whom.port),
        ("src_addr", int(whom.address)),
        ("src_port", whom.udp_port),
        ("job", part.number),
        ("epoch", low_epoch(part.epoch)),
        ("worker", index),
        ("kind", int(kind)),
    )


def _to(whom: Neighbour) -> tuple[tuple[str, int], ...]:
    return (
        ("dst_mac", whom.mac),
        ("dst_addr", int(whom.address)),
        ("dst_port", whom.udp_port),
    )
