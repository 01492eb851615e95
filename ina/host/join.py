"""How a worker gets its place in a job: CreateJob and Join, again while the controller is away."""

from __future__ import annotations

import contextlib
import logging
import time
from dataclasses import dataclass

from ina import __version__
from ina.extension.host import TransportStats
from ina.host import failure
from ina.host.aggregator import OwnAggregator
from ina.host.calls import Credentials, check_created, ticket_of
from ina.host.client import ControllerClient, process_name
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    MembershipEndedError,
    TransportError,
)
from ina.host.link import SwitchLink, TransportName, open_link
from ina.host.node import NodeOfHost, NodePlace
from ina.host.own_addresses import own_addresses, towards
from ina.host.shm import ShmLink
from ina.host.ticket import Ticket
from ina.host.wishes import NO_WISHES, Wishes
from ina.protocol.dscp import checked_dscp
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES, VERSION
from ina.protocol.verify import Verify
from ina.rpc import controller_pb2 as pb2
from ina.rpc.absence import absence
from ina.rpc.patience import Patience
from ina.rpc.queued import QUEUED
from ina.rpc.tls_probe import tls_trouble

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True)
class JoinRequest:
    """What a worker asks the controller for."""

    job: str
    rank: int
    world_size: int
    timeout_s: float  # for all of it
    slots: int = 0  # both versions; 0: the controller's default
    host: str | None = None  # this worker's IPv4 address; None: as the routing table says
    token: str = ""
    tenant: str = ""  # empty: "default"
    priority: int = 0
    transport: TransportName = "auto"
    verify: Verify | None = None  # None: as the other workers ask
    node: NodeOfHost | None = None  # this rank's part in its host's node; None: there is none
    wishes: Wishes = NO_WISHES
    dscp: int | None = None  # of its packets; None: as its tenant has it
    mode: str = ""  # of ina.modes; empty: as the other workers ask, or as is usual
    aggregator: OwnAggregator | None = None  # for the job, of rank 0; None: it brings none

    def __post_init__(self) -> None:
        """Raise InvalidInputError."""
        if self.dscp is not None:
            checked_dscp("dscp", self.dscp)


@dataclass(frozen=True)
class Grant:
    """What the controller granted it."""

    ticket: Ticket
    link: SwitchLink  # to the switch, as the controller knows it
    credentials: Credentials
    window: int  # packets in flight that this worker may have; 0: no limit but W
    lease_s: float  # silent for so long, a worker is dead
    heartbeat_s: float  # 0: the controller wants none
    node: NodePlace | None = None  # what it sends to on its own host; None: it sends to the switch
    wishes: Wishes = NO_WISHES  # what the job says of itself
    has_aggregator: bool = False  # results are made by what this rank brought for that


def join(client: ControllerClient, request: JoinRequest) -> Grant:
    """Join; while no controller answers, or only a standby, try again for `request.timeout_s`.

    As long as `request.wishes.queue_s` the job may wait for slots, before that.

    Raises ControllerError, ControllerTimeoutError, TransportError, InvalidTicketError.
    """
    whom = f"job {request.job!r} rank {request.rank}: controller"
    with Patience(_log, f"{whom} {client.address}", request.timeout_s) as patience:
        return _insist(client, request, patience, whom)


def _insist(client: ControllerClient, request: JoinRequest, patience: Patience, whom: str) -> Grant:
    silent_since = time.monotonic()
    deadline = silent_since + request.timeout_s + request.wishes.queue_s
    pause_s = _FIRST_PAUSE_S
    while True:
        patience.whom = f"{whom} {client.address}"
        try:
            return _try_once(client, request, deadline, patience)
        except (ControllerUnavailableError, MembershipEndedError) as caught:
            # NOT_FOUND: the job was created, and ended (its controller restarted) before Join.
            if QUEUED in str(caught):
                patience.heard()
                silent_since = time.monotonic()
                if silent_since >= deadline:  # the controller refuses a moment before
                    raise ControllerTimeoutError(str(caught)) from None
                _log.info("%s", caught)
                continue
            trouble = absence(client.address)
            if trouble is None:
                trouble = tls_trouble(client.address)
                if trouble is not None and not client.has_others:  # no certificate mends itself
                    raise ControllerError(f"controller {client.address}: {trouble}") from None
            error = f"controller {client.address}: {trouble}" if trouble else str(caught)
            if time.monotonic() + pause_s >= min(deadline, silent_since + request.timeout_s):
                message = f"{error}, tried for {request.timeout_s:g} s"
                raise ControllerTimeoutError(message) from None
            if pause_s == _FIRST_PAUSE_S:
                _log.info("%s; trying again", error)
            patience.missed(error.partition(": ")[2])  # without the address
        client.try_next()
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


def _try_once(
    client: ControllerClient, request: JoinRequest, deadline: float, patience: Patience
) -> Grant:
    created = client.create_job(
        pb2.CreateJobRequest(
            name=request.job,
            world_size=request.world_size,
            slots=request.slots,
            tenant=request.tenant,
            priority=request.priority,
            token=request.token,
            wire_version=VERSION,
            verify=request.verify or "",
            addresses=own_addresses(client.address, request.host),
            contributions=0 if request.node is None else request.node.contributions,
            deadline_unix_s=request.wishes.deadline_unix_s,
            steps=request.wishes.steps,
            queue_s=request.wishes.queue_s,
            mode=request.mode,
        ),
        min(_left_s(deadline), request.timeout_s),
    )
    patience.heard()  # from here on it is the other ranks that are waited for
    deadline = min(deadline, time.monotonic() + request.timeout_s)  # the queue is over
    check_created(created, client.address)
    link, place = _open(request, created, deadline)
    joined: pb2.JoinReply | None = None
    try:
        own = _open_aggregator(request, created)
        own_host, own_port = link.address
        joined = client.join(
            pb2.JoinRequest(
                name=request.job,
                rank=request.rank,
                host=own_host,
                udp_port=own_port,
                switch_port=link.switch_port,
                timeout_s=_left_s(deadline),
                token=request.token,
                takes_shared_results=link.is_listening,
                process=process_name(),
                switch=created.switch,
                node=None if place is None else _host_node(place),
                aggregator=own,
            )
        )
        if own is not None and request.aggregator is not None:
            request.aggregator.program(joined.aggregator_entities, joined.trees[0].job)
        dscp = joined.dscp if request.dscp is None else request.dscp
        link.set_dscp(dscp)
        if request.node is not None and place is not None and place.rank == request.rank:
            request.node.program(joined.node_entities, joined.trees[0].job)
            request.node.set_dscp(dscp)
        if not joined.shares_results:
            link.stop_listening()
        return _grant(request, created, joined, link, place, has_aggregator=own is not None)
    except BaseException:
        if joined is not None:
            _leave(client, _credentials(request, joined))
        link.close()
        raise


def describe_grant(grant: Grant, stats: TransportStats, controller: str) -> str:
    """Return who reaches the switch how: transport, addresses, window, build, controller.

    The line of the log that is asked for first when a job is slow.
    """
    ticket, (host, port) = grant.ticket, grant.link.address
    multicast = ", results by IP multicast" if grant.link.is_listening else ""
    verified = "" if ticket.verify == "off" else f"; sums verified ({ticket.verify})"
    threads = f"{stats.threads} thread{'s' if stats.threads > 1 else ''}"
    return (
        f"{failure.who(ticket)} reaches the switch over {grant.link.name}:"
        f" from {host}:{port}{multicast}; window {stats.window} packets, at most"
        f" {stats.in_flight_limit} in flight; {ticket.values_per_packet} values a packet;"
        f" {threads}{verified}; receive buffer {stats.receive_buffer_bytes} bytes;"
        f" job number {ticket.job}, epoch {ticket.epoch}{_trees(ticket)}; controller {controller};"
        f" ina {__version__}"
    )


def _trees(ticket: Ticket) -> str:
    """Of a job over several switches: where this worker is in each tree."""
    if ticket.is_at_one_switch:
        return ""
    places = (
        f"lanes {tree.lanes_text} as child {tree.worker} of {tree.where}" for tree in ticket.trees
    )
    return f"; summed in trees: {', '.join(places)}"


def leave(client: ControllerClient, grant: Grant) -> None:
    """Give back what could not be used after all."""
    _leave(client, grant.credentials)
    grant.link.close()


def _leave(client: ControllerClient, credentials: Credentials) -> None:
    """The others' job would wait for this rank to leave; more cannot be done if this fails."""
    with contextlib.suppress(ControllerError):
        client.leave(credentials)


def _open(
    request: JoinRequest, created: pb2.CreateJobReply, deadline: float
) -> tuple[SwitchLink, NodePlace | None]:
    """The way to the switch, or to this host's node; with a switch on this host there is no node.

    Raises TransportError.
    """
    who = f"job {request.job!r} rank {request.rank}"
    packets = max(created.slots // 2, 1)
    packet_bytes = HEADER_BYTES + VALUE_BYTES * created.values_per_packet
    has_node = request.node is not None and created.takes_host_nodes and request.transport != "udp"
    link = open_link(
        who,
        "auto" if has_node else request.transport,
        (created.switch_host, created.switch_udp_port),
        created.switch_shm,
        request.host,
        packets,
        packet_bytes,
        (created.results_host, created.results_udp_port) if created.results_host else None,
    )
    if request.node is None or not has_node or isinstance(link, ShmLink):
        return link, None
    try:
        place = request.node.open(
            created.values_per_packet,
            created.slots,
            own_host=link.address[0],
            switch_host=created.switch_host,
            timeout_s=_left_s(deadline),
        )
        if place is None and request.transport == "shm":
            raise TransportError(f"{who}: the switch offers no shared memory, and no node is here")
        near = None if place is None else ShmLink.attach(place.shm, packets, packet_bytes)
    except BaseException:
        link.close()
        raise
    if near is None:
        return link, None
    link.close()
    return near, place


def _open_aggregator(request: JoinRequest, created: pb2.CreateJobReply) -> pb2.HostNode | None:
    """Of rank 0, where the controller has none. Raises TransportError and what open() raises."""
    if not created.wants_aggregator or request.rank != 0:
        return None
    who = f"job {request.job!r} rank {request.rank}"
    if request.aggregator is None:
        raise TransportError(
            f"{who}: mode {created.mode!r} wants an aggregator, and this worker brings none:"
            " list one in the controller's file ([[aggregator]]), and run it by ina aggregator"
        )
    own_host = request.host or towards(created.switch_host)
    place = request.aggregator.open(created.values_per_packet, own_host)
    return pb2.HostNode(rank=0, host=place.host, udp_port=place.udp_port, switch_port=place.port)


def _host_node(place: NodePlace) -> pb2.HostNode:
    return pb2.HostNode(
        rank=place.rank, host=place.host, udp_port=place.udp_port, switch_port=place.uplink_port
    )


def _grant(
    request: JoinRequest,
    created: pb2.CreateJobReply,
    joined: pb2.JoinReply,
    link: SwitchLink,
    place: NodePlace | None,
    *,
    has_aggregator: bool = False,
) -> Grant:
    ticket = ticket_of(request.job, request.rank, created, joined)
    asked = (created.switch_host, created.switch_udp_port)
    # Of several trees the transport is told of each. The first is not always of the switch that the
    # controller has named, nor is a node on this host.
    if len(ticket.trees) == 1 and ticket.switch != asked:
        link.lead_to(*ticket.switch)
    return Grant(
        ticket,
        link,
        _credentials(request, joined),
        joined.window,
        joined.lease_s,
        joined.heartbeat_s,
        place,
        request.wishes,
        has_aggregator,
    )


def _credentials(request: JoinRequest, joined: pb2.JoinReply) -> Credentials:
    return Credentials(request.job, request.rank, joined.epoch, joined.member_key)


def _left_s(deadline: float) -> float:
    return max(deadline - time.monotonic(), 0.001)
