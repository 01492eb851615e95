"""A P4Runtime connection over gRPC: finsy's client, with deadlines of its own and typed errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Protocol

import finsy
import grpc
from finsy.grpcutil import GRPCCredentialsTLS, GRPCOptions, grpc_channel
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import U128, p4r, p4r_grpc

from ina.rpc.tls import PLAIN_TEXT, TlsFiles, load
from ina.rpc.tls_probe import tls_trouble
from ina.tables import port_drops
from ina.tables.entities import Entities, ProgramFiles, entities_of
from ina.tables.errors import SwitchError
from ina.tables.values import (
    AnyItem,
    Count,
    Counter,
    CounterRef,
    DefaultAction,
    Entry,
    Group,
    Match,
    PortDrop,
)
from ina.tables.wire import News, TableUpdate, news_of

PIPELINE_TIMEOUT_S = 120.0
"""A soft switch compiles the program to native code when it sees it for the first time."""
_FIRST_BACKOFF_MS, _MAX_BACKOFF_MS = 100, 1000
_GONE = (finsy.GRPCStatusCode.UNAVAILABLE, finsy.GRPCStatusCode.DEADLINE_EXCEEDED)
_MAX_METADATA_BYTES = 64 << 10
_UPDATES = {
    TableUpdate.INSERT: p4r.Update.INSERT,
    TableUpdate.MODIFY: p4r.Update.MODIFY,
    TableUpdate.DELETE: p4r.Update.DELETE,
}


def switch_credentials(files: TlsFiles) -> GRPCCredentialsTLS | None:
    """For finsy's P4Runtime client; None: plain text. Raises :class:`~ina.rpc.tls.TlsError`."""
    if not files:
        return None
    pair, roots = load(files, server=False)
    key, chain = pair or (None, None)
    return GRPCCredentialsTLS(cacert=roots, cert=chain, private_key=key)


class _Options(GRPCOptions):
    def to_native(self) -> list[tuple[str, Any]]:
        """Those of finsy, and how long gRPC waits before it connects again."""
        return [
            *super().to_native(),
            ("grpc.initial_reconnect_backoff_ms", _FIRST_BACKOFF_MS),
            ("grpc.max_reconnect_backoff_ms", _MAX_BACKOFF_MS),
        ]


class RuntimeClient(Protocol):
    """What a wire uses of finsy's P4Client, whose errors it raises."""

    async def open(self) -> None:
        """Does not wait for an answer."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...

    async def send(self, msg: p4r.StreamMessageRequest) -> None:
        """On the stream."""
        ...

    async def receive(self) -> p4r.StreamMessageResponse:
        """Of the stream, the next."""
        ...

    async def request(self, msg: Any) -> Any:
        """Any but Read and SetForwardingPipelineConfig."""
        ...

    def request_iter(self, msg: p4r.ReadRequest) -> AsyncIterator[p4r.ReadResponse]:
        """Read."""
        ...

    async def set_pipeline(self, msg: p4r.SetForwardingPipelineConfigRequest) -> None:
        """Waits until the switch has compiled it."""
        ...


class PatientClient(P4Client):
    """finsy's; but that lets gRPC wait for up to 15 s, which all channels to an address share.

    So a session made anew waited as long as the ones before it, though the switch was back.
    """

    async def open(
        self,
        *,
        schema: finsy.P4Schema | None = None,
        complete_request: Callable[[Any], None] | None = None,
    ) -> None:
        """See :class:`RuntimeClient`."""
        self._channel = grpc_channel(
            self._address,
            credentials=self._credentials,
            options=_Options(max_metadata_size=_MAX_METADATA_BYTES),
            client_type="P4Client",
        )
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._schema = schema
        self._complete_request = complete_request

    async def set_pipeline(self, msg: p4r.SetForwardingPipelineConfigRequest) -> None:
        """A request with a deadline of its own."""
        assert self._channel is not None
        stub: Any = p4r_grpc.P4RuntimeStub(self._channel)
        try:
            await stub.SetForwardingPipelineConfig(msg, timeout=PIPELINE_TIMEOUT_S)
        except grpc.RpcError as error:
            raise P4ClientError(error, "set pipeline") from None


class GrpcWire:
    """A :class:`~ina.tables.wire.Wire`."""

    def __init__(
        self,
        address: str,
        device_id: int,
        program: ProgramFiles | None,
        tls: TlsFiles = PLAIN_TEXT,
        *,
        client: RuntimeClient | None = None,
    ) -> None:
        """``client``: what carries the messages; None: gRPC.

        Raises :class:`~ina.rpc.tls.TlsError`: a file of ``tls`` is wrong.
        """
        self._address, self._device_id, self._tls = address, device_id, tls
        self.program = program
        """Of whose names it speaks; to be set before the program is."""
        self._client = client or PatientClient(address, switch_credentials(tls))
        self.on_packet: Callable[[p4r.PacketIn], None] = lambda packet: None
        """Called with each packet-in."""

    async def open(self) -> None:
        """See :class:`Wire`."""
        await self._client.open()

    async def close(self) -> None:
        """See :class:`Wire`."""
        await self._client.close()

    async def trouble(self) -> str | None:
        """Whether it is TLS."""
        return await asyncio.to_thread(tls_trouble, self._address, self._tls)

    async def elect(self, election_id: int) -> None:
        """See :class:`Wire`."""
        update = p4r.MasterArbitrationUpdate(device_id=self._device_id)
        if election_id:
            update.election_id.CopyFrom(U128.encode(election_id))
        await self._send(p4r.StreamMessageRequest(arbitration=update))

    async def news(self) -> News:
        """See :class:`Wire`."""
        while True:
            try:
                message = await self._client.receive()
            except P4ClientError as error:
                raise self._translated(error) from None
            except RuntimeError:  # the stream ended without a status
                raise self._error("it closed the stream") from None
            if message.HasField("packet"):
                self.on_packet(message.packet)
            elif message.HasField("arbitration"):
                return news_of(message.arbitration)

    async def packet_out(self, packet: bytes, egress_port: int) -> None:
        """Sends a frame out of a port, past the tables."""
        await self._send(self._entities.packet_out(packet, egress_port))

    async def probe(self) -> None:
        """See :class:`Wire`."""
        await self._cookie()

    async def runs_program(self) -> bool:
        """See :class:`Wire`."""
        return await self._cookie() == self._entities.cookie

    async def set_program(self, as_id: int) -> None:
        """See :class:`Wire`."""
        if await self._cookie() is not None:
            # BMv2 forgets to clear them: a group made anew would send each result twice.
            groups = await self._read([Entities.groups()])
            await self._update(TableUpdate.DELETE, groups, as_id)
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            election_id=U128.encode(as_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._entities.config,
        )
        try:
            await self._client.set_pipeline(request)
        except P4ClientError as error:
            raise self._translated(error) from None

    async def write(self, change: TableUpdate, items: Sequence[AnyItem], as_id: int) -> None:
        """See :class:`Wire`. Refuses what the program has no name or no bits for."""
        encoded = []
        for item in items:
            if change is TableUpdate.DELETE and isinstance(item, DefaultAction):
                item = DefaultAction(item.table, "")
            try:
                encoded.append(self._entities.encode(item))
            except ValueError as error:
                if change is not TableUpdate.DELETE:  # what cannot be said cannot be there
                    raise self._error(str(error), refused=True) from None
        await self._update(change, encoded, as_id)

    async def read_entries(self, table: str) -> list[Entry]:
        """See :class:`Wire`."""
        found = await self._read([self._entities.entries_of(table)])
        items = (self._entities.decode(entity) for entity in found)
        return [item for item in items if isinstance(item, Entry)]

    async def read_groups(self) -> list[Group]:
        """See :class:`Wire`."""
        found = await self._read([Entities.groups()])
        items = (self._entities.decode(entity) for entity in found)
        return [item for item in items if isinstance(item, Group)]

    async def read_counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """See :class:`Wire`. Each by its own entity: not every switch knows wildcards."""
        found = await self._read([self._entities.counter(ref) for ref in refs])
        if len(found) != len(refs):
            raise self._error(f"{len(refs)} counters asked, {len(found)} given")
        return [self._entities.count(entity) for entity in found]

    async def clear_counts(self, counters: Sequence[Counter], as_id: int) -> None:
        """See :class:`Wire`."""
        zero = [self._entities.counter(counter, is_zero=True) for counter in counters]
        await self._update(TableUpdate.MODIFY, zero, as_id)

    async def read_row_counts(self, table: str) -> list[tuple[Match, Count]]:
        """See :class:`Wire`."""
        found = await self._read([self._entities.row_counts_of(table)])
        counts = [(self._entities.counted_match(it), self._entities.count(it)) for it in found]
        return [(match, count) for match, count in counts if match]

    async def read_port_drops(self) -> list[PortDrop]:
        """See :class:`Wire`."""
        request = p4r.ReadRequest(device_id=self._device_id, entities=[port_drops.wanted()])
        try:
            replies = [it async for it in self._client.request_iter(request)]
        except P4ClientError as error:
            if error.code in _GONE:
                raise self._translated(error) from None
            return []  # it knows no such extern
        return port_drops.decode(entity for reply in replies for entity in reply.entities)

    @property
    def _entities(self) -> Entities:
        assert self.program is not None, "a session without a program speaks of roles alone"
        return entities_of(self.program.p4info, self.program.bmv2_json)

    async def _send(self, message: p4r.StreamMessageRequest) -> None:
        try:
            await self._client.send(message)
        except P4ClientError as error:
            raise self._translated(error) from None

    async def _cookie(self) -> int | None:
        """Of the program that runs; None: none does, or it has no cookie."""
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY,
        )
        try:
            reply = await self._client.request(request)
        except P4ClientError as error:
            if error.code == finsy.GRPCStatusCode.FAILED_PRECONDITION:
                return None  # no pipeline is set
            raise self._translated(error) from None
        return reply.config.cookie.cookie if reply.config.HasField("cookie") else None

    async def _read(self, wanted: Iterable[p4r.Entity]) -> list[p4r.Entity]:
        request = p4r.ReadRequest(device_id=self._device_id, entities=wanted)
        try:
            return [
                entity
                async for reply in self._client.request_iter(request)
                for entity in reply.entities
            ]
        except P4ClientError as error:
            raise self._translated(error) from None

    async def _update(
        self, change: TableUpdate, entities: Iterable[p4r.Entity], as_id: int
    ) -> None:
        updates = [p4r.Update(type=_kind(change, entity), entity=entity) for entity in entities]
        if not updates:
            return
        request = p4r.WriteRequest(
            device_id=self._device_id, election_id=U128.encode(as_id), updates=updates
        )
        try:
            await self._client.request(request)
        except P4ClientError as error:
            if not (change is TableUpdate.DELETE and error.is_not_found_only):
                raise self._translated(error) from None

    def _translated(self, error: P4ClientError) -> SwitchError:
        details = next(iter(error.details.values()), None)
        message = error.message if details is None else details.message
        return self._error(f"{message or error.code.name}", refused=details is not None)

    def _error(self, what: str, *, refused: bool = False) -> SwitchError:
        error = SwitchError(f"switch {self._address} device {self._device_id}: {what}")
        error.refused = refused
        return error


def _kind(change: TableUpdate, entity: p4r.Entity) -> p4r.Update.Type.ValueType:
    """A default action is always there: it is modified, to the program's own by one without it."""
    is_default = entity.HasField("table_entry") and entity.table_entry.is_default_action
    return p4r.Update.MODIFY if is_default else _UPDATES[change]
