"""How a worker gets its place in a job: CreateJob and Join, again while the controller is away."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from ina.host.aggregator import OwnAggregator
from ina.host.calls import Credentials, check_created, switch_of, ticket_of
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    MembershipEndedError,
    TransportError,
)
from ina.host.member.client import ControllerClient
from ina.host.member.driver import Driver, Waiting
from ina.host.member.join_link import JoinLink
from ina.host.node import NodePlace
from ina.host.options import WorkerOptions
from ina.host.ticket import Ticket
from ina.modes.transports import mode_for
from ina.protocol.peer import Peer
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from ina.rpc.queued import QUEUED

_log = logging.getLogger(__name__)

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 1.0


@dataclass(frozen=True)
class JoinRequest:
    """What a worker asks the controller for."""

    job: str
    rank: int
    world_size: int
    options: WorkerOptions

    @property
    def who(self) -> str:
        """For people, before there is a ticket."""
        return f"job {self.job!r} rank {self.rank}"


L = TypeVar("L", bound=JoinLink)
L_co = TypeVar("L_co", bound=JoinLink, covariant=True)


@dataclass(frozen=True)
class Grant(Generic[L_co]):
    """What the controller granted it."""

    ticket: Ticket
    link: L_co  # to the switch, as the controller knows it
    credentials: Credentials
    window: int  # packets in flight that this worker may have; 0: no limit but W
    lease_s: float  # silent for so long, a worker is dead
    heartbeat_s: float  # 0: the controller wants none
    options: WorkerOptions  # that it asked with
    node: NodePlace | None = None  # what it sends to on its own host; None: it sends to the switch
    aggregator: OwnAggregator | None = None  # the job's, if this rank runs it


class OwnHost(Protocol[L_co]):
    """The worker's own host, as far as joining needs it. Its methods may take long."""

    def addresses(self, controller: str) -> Sequence[str]:
        """Its IPv4 addresses, first the one towards the controller at "host:port"."""

    def towards(self, host: str) -> str:
        """Its IPv4 address that another host sees."""

    def open(self, created: pb2.CreateJobReply, left_s: float) -> tuple[L_co, NodePlace | None]:
        """The way to the switch, or to this host's node. Raises TransportError."""


async def join(
    client: ControllerClient, request: JoinRequest, own_host: OwnHost[L], driver: Driver
) -> Grant[L]:
    """Join; while no controller answers, or only a standby, try again for `options.timeout_s`.

    As long as `options.wishes.queue_s` the job may wait for slots, before that.

    Raises ControllerError, ControllerTimeoutError, TransportError, InvalidTicketError.
    """
    whom = f"{request.who}: controller {client.address}"
    with driver.patience(whom, request.options.timeout_s) as patience:
        return await _Joining(client, request, own_host, driver, patience).insist()


class _Joining(Generic[L]):
    """One worker's, until it has its place."""

    def __init__(
        self, client: ControllerClient, request: JoinRequest, own_host: OwnHost[L], driver: Driver,
        patience: Waiting,
    ) -> None:  # fmt: skip
        self._client, self._request, self._options = client, request, request.options
        self._own_host, self._driver, self._patience = own_host, driver, patience

    async def insist(self) -> Grant[L]:
        """Again and again."""
        client, patience, timeout_s = self._client, self._patience, self._options.timeout_s
        silent_since = self._driver.now_s()
        deadline = silent_since + timeout_s + self._options.wishes.queue_s
        pause_s = _FIRST_PAUSE_S
        while True:
            patience.whom = f"{self._request.who}: controller {client.address}"
            try:
                return await self._try_once(deadline)
            except (ControllerUnavailableError, MembershipEndedError) as caught:
                # NOT_FOUND: the job was created, and ended (its controller restarted) before Join.
                if QUEUED in str(caught):
                    patience.heard()
                    silent_since = self._driver.now_s()
                    if silent_since >= deadline:  # the controller refuses a moment before
                        raise ControllerTimeoutError(str(caught)) from None
                    _log.info("%s", caught)
                    continue
                error = await self._why_away(caught)
                if self._driver.now_s() + pause_s >= min(deadline, silent_since + timeout_s):
                    message = f"{error}, tried for {timeout_s:g} s"
                    raise ControllerTimeoutError(message) from None
                if pause_s == _FIRST_PAUSE_S:
                    _log.info("%s; trying again", error)
                patience.missed(error.partition(": ")[2])  # without the address
            client.try_next()
            await self._driver.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _why_away(self, caught: ControllerError) -> str:
        """Raises ControllerError where another try would end no better."""
        trouble = await self._client.trouble()
        if trouble is None:
            return str(caught)
        error = f"controller {self._client.address}: {trouble.text}"
        if not trouble.may_mend and not self._client.has_others:
            raise ControllerError(error) from None
        return error

    async def _try_once(self, deadline: float) -> Grant[L]:
        options, driver = self._options, self._driver
        created = await self._create(min(self._left_s(deadline), options.timeout_s))
        self._patience.heard()  # from here on it is the other ranks that are waited for
        deadline = min(deadline, driver.now_s() + options.timeout_s)  # the queue is over
        check_created(created, self._client.address)
        left_s = self._left_s(deadline)
        link, place = await driver.outside(lambda: self._own_host.open(created, left_s))
        joined: pb2.JoinReply | None = None
        try:
            aggregator = await self._open_aggregator(created)
            joined = await self._join(created, link, place, aggregator, deadline)
            await self._program(joined, link, place, has_aggregator=aggregator is not None)
            own = options.aggregator if aggregator is not None else None
            return self._grant(created, joined, link, place, own)
        except BaseException:
            if joined is not None:
                await leave(self._client, self._credentials(joined))
            link.close()
            raise

    async def _create(self, timeout_s: float) -> pb2.CreateJobReply:
        request, options, client = self._request, self._options, self._client
        addresses = await self._driver.outside(lambda: self._own_host.addresses(client.address))
        return await client.create_job(
            pb2.CreateJobRequest(
                name=request.job,
                world_size=request.world_size,
                slots=options.slots,
                tenant=options.tenant,
                priority=options.priority,
                token=options.token,
                wire_version=VERSION,
                verify=options.verify or "",
                addresses=addresses,
                contributions=0 if options.node is None else options.node.contributions,
                deadline_unix_s=options.wishes.deadline_unix_s,
                steps=options.wishes.steps,
                queue_s=options.wishes.queue_s,
                mode=mode_for(options.transport, options.mode),
            ),
            timeout_s,
        )

    async def _open_aggregator(self, created: pb2.CreateJobReply) -> pb2.HostNode | None:
        """Of rank 0, where the controller has none. Raises TransportError and what open() does."""
        if not created.wants_aggregator or self._request.rank != 0:
            return None
        own, host = self._options.aggregator, self._options.host
        if own is None:
            raise TransportError(
                f"{self._request.who}: mode {created.mode!r} wants an aggregator, and this worker"
                " brings none: list one in the controller's file ([[aggregator]]), and run it by"
                " ina aggregator"
            )
        open_, towards, values = own.open, self._own_host.towards, created.values_per_packet
        place = await self._driver.outside(
            lambda: open_(values, host or towards(created.switch_host))
        )
        return _host_node(0, place.peer, place.port)

    async def _join(
        self, created: pb2.CreateJobReply, link: L, place: NodePlace | None,
        aggregator: pb2.HostNode | None, deadline: float,
    ) -> pb2.JoinReply:  # fmt: skip
        own_host, own_port = link.own.place
        return await self._client.join(
            pb2.JoinRequest(
                name=self._request.job,
                rank=self._request.rank,
                host=own_host,
                udp_port=own_port,
                switch_port=link.switch_port,
                timeout_s=self._left_s(deadline),
                token=self._options.token,
                takes_shared_results=link.is_listening,
                queue_pair=link.own.queue_pair,
                ring_pairs=link.own.ring_pairs,
                process=self._client.process,
                switch=created.switch,
                node=None
                if place is None
                else _host_node(place.rank, place.peer, place.uplink_port),
                aggregator=aggregator,
            )
        )

    async def _program(
        self, joined: pb2.JoinReply, link: L, place: NodePlace | None, *, has_aggregator: bool
    ) -> None:
        """What this process runs for its job, and what the link is told."""
        own, node, outside = self._options.aggregator, self._options.node, self._driver.outside
        if has_aggregator and own is not None:
            program = own.program
            await outside(lambda: program(joined.aggregator_entities, joined.trees[0].job))
        dscp = joined.dscp if self._options.dscp is None else self._options.dscp
        link.set_dscp(dscp)
        if node is not None and place is not None and place.rank == self._request.rank:
            program = node.program
            await outside(lambda: program(joined.node_entities, joined.trees[0].job))
            node.set_dscp(dscp)
        if not joined.shares_results:
            link.stop_listening()

    def _grant(
        self, created: pb2.CreateJobReply, joined: pb2.JoinReply, link: L,
        place: NodePlace | None, own: OwnAggregator | None,
    ) -> Grant[L]:  # fmt: skip
        ticket = ticket_of(self._request.job, self._request.rank, created, joined)
        asked = switch_of(created)
        # Of several trees the transport is told of each. The first is not always of the switch that
        # the controller has named, nor is a node on this host.
        if len(ticket.trees) == 1 and ticket.switch != asked:
            link.lead_to(ticket.switch)
        return Grant(
            ticket,
            link,
            self._credentials(joined),
            window=joined.window,
            lease_s=joined.lease_s,
            heartbeat_s=joined.heartbeat_s,
            options=self._options,
            node=place,
            aggregator=own,
        )

    def _credentials(self, joined: pb2.JoinReply) -> Credentials:
        request = self._request
        return Credentials(request.job, request.rank, joined.epoch, joined.member_key)

    def _left_s(self, deadline: float) -> float:
        return max(deadline - self._driver.now_s(), 0.001)


async def leave(client: ControllerClient, credentials: Credentials) -> None:
    """Give back what could not be used after all.

    The others' job would wait for this rank to leave; more cannot be done if this fails.
    """
    with contextlib.suppress(ControllerError):
        await client.leave(credentials)


def _host_node(rank: int, at: Peer, port: int) -> pb2.HostNode:
    host, udp_port = at.place
    return pb2.HostNode(rank=rank, host=host, udp_port=udp_port, switch_port=port)
