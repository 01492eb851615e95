"""What a worker says to a controller, and what it makes of the answers. No I/O.

Whoever carries it (:class:`ina.host.member.client.Wire`) says the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import grpc

from ina import modes
from ina.congestion import Congestion, CongestionError
from ina.errors import InaError
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    CorruptedSumError,
    InvalidTicketError,
    JobEndedError,
    JobEvictedError,
    JobFailedError,
    MembershipEndedError,
    RanksDifferError,
    SwitchLostError,
    TransportError,
    WorkerLostError,
)
from ina.host.rdma import RingAddresses
from ina.host.ticket import Ticket
from ina.host.trees import TreePlace
from ina.protocol.peer import Peer
from ina.protocol.ring import Ring, RingNode
from ina.protocol.spec import VERSION
from ina.protocol.verify import checked_verify
from ina.rpc import controller_pb2 as pb2

JOIN_GRACE_S = 5.0
"""On top of Join's own timeout, so that the controller can say who is missing before the call's
deadline."""

_ERRORS: dict[int, type[JobFailedError]] = {
    pb2.MEMBER_LOST: WorkerLostError,
    pb2.JOB_EVICTED: JobEvictedError,
    pb2.SWITCH_LOST: SwitchLostError,
    pb2.RANKS_DIFFER: RanksDifferError,
    pb2.SUMS_CORRUPTED: CorruptedSumError,
}
_CAUSES: dict[type[InaError], pb2.EventKind] = {
    _ERRORS[kind]: kind for kind in (pb2.SWITCH_LOST, pb2.SUMS_CORRUPTED)
}
"""What ends the job for all ranks, whoever of them notices it."""


@dataclass(frozen=True)
class Credentials:
    """What a worker shows the controller with every call after Join."""

    name: str  # the job's
    rank: int
    epoch: int
    key: bytes


def heartbeat_request(
    credentials: Credentials, progress: pb2.Progress, process: str
) -> pb2.HeartbeatRequest:
    """Return what renews the worker's lease; `process`: what people know it by."""
    return pb2.HeartbeatRequest(
        name=credentials.name,
        rank=credentials.rank,
        epoch=credentials.epoch,
        member_key=credentials.key,
        progress=progress,
        process=process,
    )


def watch_request(credentials: Credentials) -> pb2.WatchRequest:
    """Return what opens the stream of what happens to the worker's job."""
    return pb2.WatchRequest(
        name=credentials.name,
        rank=credentials.rank,
        epoch=credentials.epoch,
        member_key=credentials.key,
    )


def leave_request(
    credentials: Credentials,
    progress: pb2.Progress | None = None,
    error: InaError | None = None,
) -> pb2.LeaveRequest:
    """Return what takes the worker out of its job; `error`: for which it gives up."""
    reason = "" if error is None else str(error)
    if error is not None:  # the controller knows of whom it is
        _, whose, rest = reason.partition(f"job {credentials.name!r} rank {credentials.rank}")
        reason = rest.partition(": ")[2] if whose else reason
    return pb2.LeaveRequest(
        name=credentials.name,
        rank=credentials.rank,
        epoch=credentials.epoch,
        member_key=credentials.key,
        progress=progress,
        reason=reason,
        cause=pb2.EVENT_UNSPECIFIED
        if error is None
        else _CAUSES.get(type(error), pb2.EVENT_UNSPECIFIED),
    )


@dataclass(frozen=True)
class RemapWord:
    """What a worker says of a change of its job's mapping."""

    to_epoch: int = 0  # the mapping that it is about; 0: it just asks
    first_operation: int = 0  # of rank 0: from this one on they use it; 0: not decided
    done: bool = False  # this rank has all results of operations before that one
    declined: str = ""  # why this rank does not want it, or cannot


def remap_request(credentials: Credentials, word: RemapWord) -> pb2.RemapRequest:
    """Return what asks for the job's other mapping, and says how far the worker is with it."""
    return pb2.RemapRequest(
        name=credentials.name,
        rank=credentials.rank,
        epoch=credentials.epoch,
        member_key=credentials.key,
        to_epoch=word.to_epoch,
        first_operation=word.first_operation,
        done=word.done,
        declined=bool(word.declined),
        reason=word.declined,
    )


def check_created(created: pb2.CreateJobReply, address: str) -> None:
    """Raise ControllerError unless this version's workers can be in such a job."""
    if created.wire_version != VERSION:
        raise ControllerError(
            f"controller {address}: its switch takes packets of wire format "
            f"{created.wire_version}, this worker's ina sends {VERSION}; install the same "
            "version of ina"
        )
    if created.mode not in modes.names():
        *others, last = map(repr, modes.names())
        raise ControllerError(
            f"controller {address}: its job has mode {created.mode!r}, this worker's ina speaks"
            f" {', '.join(others)} and {last}; install the same version of ina"
        )


def switch_of(created: pb2.CreateJobReply) -> Peer:
    """Return the switch that a worker first sends to. Raises TransportError."""
    return _peer(created.switch_host, created.switch_udp_port, "the switch", TransportError)


def results_of(created: pb2.CreateJobReply) -> Peer | None:
    """Return the multicast group of results to several workers; None: there are none such.

    Raises TransportError.
    """
    if not created.results_host:
        return None
    return _peer(created.results_host, created.results_udp_port, "results", TransportError)


def device_rings_of(created: pb2.CreateJobReply) -> RingAddresses | None:
    """Return which addresses RDMA devices have in rings; None: none. Raises TransportError."""
    hosts = created.first_ring_host, created.last_ring_host
    if not all(hosts):
        return None
    first, last = (_peer(host, 0, "rings", TransportError).address for host in hosts)
    return first, last


def _peer(host: str, udp_port: int, what: str, error: type[InaError]) -> Peer:
    try:
        return Peer.at((host, udp_port))
    except ValueError:
        raise error(f"{what}: host {host!r} is no IPv4 address") from None


def ticket_of(job: str, rank: int, created: pb2.CreateJobReply, joined: pb2.JoinReply) -> Ticket:
    """Return the place that was granted. Raises what is wrong with it: InvalidInputError."""
    return Ticket(
        job_name=job,
        epoch=joined.epoch,
        rank=rank,
        world_size=joined.world_size,
        slots=joined.slots,
        values_per_packet=created.values_per_packet,
        trees=_tree_places(joined.trees),
        congestion=congestion_of(joined),
        mode=created.mode,
        verify=checked_verify("the controller's verify", joined.verify),
        check_key=joined.check_key,
    )


def remapped(ticket: Ticket, mapping: pb2.Mapping) -> Ticket:
    """Return the ticket of the same place in the job, by another mapping.

    Raises what is wrong with it: InvalidInputError.
    """
    return replace(
        ticket,
        epoch=mapping.epoch,
        slots=mapping.slots,
        mode=mapping.mode,
        congestion=congestion_of(mapping) if mapping.HasField("congestion") else ticket.congestion,
        trees=_tree_places(mapping.trees),
    )


def _tree_places(trees: Iterable[pb2.Tree]) -> tuple[TreePlace, ...]:
    return tuple(
        TreePlace(
            job=tree.job,
            peer=_node(tree, f"tree {number}"),
            worker=tree.worker,
            path=tree.path,
            expected_bitmap=tree.expected_bitmap,
            first_lane=tree.first_lane,
            lanes=tree.lanes,
            node=tree.node,
            owners=tuple(tree.owners),
        )
        for number, tree in enumerate(trees)
    )


def _node(tree: pb2.Tree, what: str) -> Peer:
    at = _peer(tree.host, tree.udp_port, what, InvalidTicketError)
    if not tree.HasField("ring"):
        return replace(at, queue_pair=tree.queue_pair)
    said = tree.ring
    own, following, before = (
        _peer(host, 0, f"{what}, its ring", InvalidTicketError).address
        for host in (said.address, said.next, said.previous)
    )
    pairs = tuple(said.next_pairs), tuple(said.previous_pairs)
    ring = Ring(own, following, before, *pairs, said.first_psn)
    return RingNode(at.address, at.udp_port, ring=ring)


def error_of(code: grpc.StatusCode, message: str, timeout_s: float) -> ControllerError:
    """Return what a call's status means; `message`: whose call, what for, and what was said."""
    if code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return ControllerTimeoutError(f"{message} (after {timeout_s:g} s)")
    # CANCELLED: a controller that stops lets go of what it was about to answer.
    if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
        return ControllerUnavailableError(f"{message} ({code.name})")
    if code == grpc.StatusCode.NOT_FOUND:
        return MembershipEndedError(f"{message} ({code.name})")
    return ControllerError(f"{message} ({code.name})")


def end_of(event: pb2.JobEvent, who: str) -> JobFailedError | None:
    """Return the error by which the job ends for its workers; None: it goes on."""
    if not event.fatal and event.kind != pb2.JOB_ENDED:
        return None
    error = _ERRORS.get(event.kind, JobEndedError)
    return error(f"{who}: {event.reason}", tuple(event.ranks))


def congestion_of(joined: pb2.JoinReply | pb2.Mapping) -> Congestion:
    """What the ticket asks for; the usual one where it says nothing. Raises CongestionError."""
    if not joined.HasField("congestion"):
        return Congestion()
    told = joined.congestion
    try:
        return Congestion(told.algorithm, dict(told.options))
    except CongestionError as error:
        raise CongestionError(f"as the controller's [congestion] asks: {error}") from None
