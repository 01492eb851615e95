"""One P4Runtime session with one switch: election, pipeline, writes, reads.

Every call has a deadline. A session ends with its stream; it does not connect again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import finsy
import grpc
from finsy import p4entity
from finsy.grpcutil import GRPCCredentialsTLS, GRPCOptions, grpc_channel
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

from ina.p4 import CompiledProgram
from ina.rpc.tls import PLAIN_TEXT, TlsFiles, load
from ina.rpc.tls_probe import tls_trouble
from ina.tables.errors import SwitchError

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
FORMER_SELF_ATTEMPTS, FORMER_SELF_PAUSE_S = 10, 0.1
"""A controller that starts again may be faster than the switch's news that its stream has ended."""
TLS_PATIENCE_S = 1.0
"""After so long without an answer, ask whether TLS is the trouble: waiting does not mend that."""
PIPELINE_TIMEOUT_S = 120.0
"""A soft switch compiles the program to native code when it sees it for the first time."""
PROBE_S = 2.0
"""How often the switch is asked for a sign of life; no answer to a call ends the session."""
_FIRST_BACKOFF_MS, _MAX_BACKOFF_MS = 100, 1000
_MAX_METADATA_BYTES = 64 << 10


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


class _Client(P4Client):
    """finsy's; but that lets gRPC wait for up to 15 s, which all channels to an address share.

    So a session made anew waited as long as the ones before it, though the switch was back.
    """

    async def open(
        self,
        *,
        schema: finsy.P4Schema | None = None,
        complete_request: Callable[[Any], None] | None = None,
    ) -> None:
        self._channel = grpc_channel(
            self._address,
            credentials=self._credentials,
            options=_Options(max_metadata_size=_MAX_METADATA_BYTES),
            client_type="P4Client",
        )
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._schema = schema
        self._complete_request = complete_request


class P4RuntimeSession:
    """A connected session. Use :meth:`connect`; :meth:`close` ends it."""

    def __init__(
        self,
        address: str,
        device_id: int,
        election_id: int,
        tls: TlsFiles = PLAIN_TEXT,
        *,
        standby: bool = False,
    ) -> None:
        self.address = address
        self.device_id = device_id
        self._tls = tls
        self.election_id = election_id
        """What it has told the switch; a backup raises it to become primary."""
        self.is_primary = False
        self.writes_for_primary = False
        """As a backup, write in the primary's name: whoever shares a switch's tables with it."""
        self.lost: str | None = None
        """Why it is of no use any more; None: it works."""
        self.heard_s = time.monotonic()
        """When the switch answered last."""
        self._own_id = election_id
        self._standby = standby
        self._primary_id = 0
        self._decided = False
        self._changed = asyncio.Event()
        self._schema = finsy.P4Schema()
        self._client = _Client(address, switch_credentials(tls))
        self._tasks: list[asyncio.Task[None]] = []
        self._busy = False

    @classmethod
    async def connect(
        cls,
        address: str,
        device_id: int,
        *,
        election_id: int = 1,
        tls: TlsFiles = PLAIN_TEXT,
        timeout_s: float = CONNECT_TIMEOUT_S,
        standby: bool = False,
    ) -> P4RuntimeSession:
        """Connects to the P4Runtime server at ``address`` (``host:port``).

        ``standby``: where another controller is primary, go on as a backup, which becomes primary
        when that one's stream ends; otherwise that is an error.

        Raises :class:`SwitchError`: nobody answers, TLS fails, or another controller is primary;
        :class:`~ina.rpc.tls.TlsError`: a file of ``tls`` is wrong.
        """
        for attempt in range(FORMER_SELF_ATTEMPTS + 1):
            session = cls(address, device_id, election_id, tls, standby=standby)
            # A backup whose id somebody else uses says none, until it must.
            anonymous = attempt == FORMER_SELF_ATTEMPTS
            try:
                await session._arbitrate_in_time(timeout_s, anonymous=anonymous)
                break
            except BaseException as error:
                await session.close()
                tries = FORMER_SELF_ATTEMPTS if standby else FORMER_SELF_ATTEMPTS - 1
                if attempt >= tries or not _is_id_used(error):
                    raise
            await asyncio.sleep(FORMER_SELF_PAUSE_S)
        session._tasks = [
            asyncio.create_task(session._listen()),
            asyncio.create_task(session._probe()),
        ]
        return session

    async def close(self) -> None:
        """Ends the session; the switch keeps its entries."""
        self._end("the session is closed")
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    async def until_primary(self) -> None:
        """Returns when this controller is primary; raises :class:`SwitchError` if it is lost."""
        await self._until(primary=True)

    async def until_backup(self) -> None:
        """Returns when another is primary; raises :class:`SwitchError` if the session is lost."""
        await self._until(primary=False)

    def who_is_primary(self) -> str:
        """For people: why this one is not."""
        if self._primary_id == 0:
            return "no controller is primary"
        return f"another controller is primary (election id {self._primary_id})"

    async def has_pipeline(self, program: CompiledProgram) -> bool:
        """Whether the switch runs this program, of which this session speaks from now on."""
        self._schema = finsy.P4Schema(program.p4info, program.bmv2_json)
        return await self._cookie() == self._schema.p4cookie

    async def set_pipeline(self, program: CompiledProgram) -> bool:
        """Sets the program if the switch runs another; returns whether it did.

        Setting a pipeline clears all tables, groups, counters and registers.
        """
        self._schema = finsy.P4Schema(program.p4info, program.bmv2_json)
        cookie = await self._cookie()
        if cookie == self._schema.p4cookie:
            return False
        if cookie is not None:
            # BMv2 forgets to clear them: a group made anew would send each result twice.
            await self.delete(await self.read([p4entity.P4MulticastGroupEntry()]))
        channel = self._client.channel
        assert channel is not None
        stub: Any = p4r_grpc.P4RuntimeStub(channel)
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._schema.get_pipeline_config(),
        )
        self._sign(request)
        self._busy = True
        try:
            with self._hanging_up():
                await stub.SetForwardingPipelineConfig(request, timeout=PIPELINE_TIMEOUT_S)
        except grpc.RpcError as error:
            raise self._translate(P4ClientError(error, "set pipeline")) from None
        finally:
            self._busy = False
        self.heard_s = time.monotonic()
        return True

    async def insert(self, entities: Sequence[p4entity.P4Entity]) -> None:
        """Inserts all; raises :class:`SwitchError` if the switch refuses any."""
        await self._write(p4r.Update.INSERT, entities)

    async def modify(self, entities: Sequence[p4entity.P4Entity]) -> None:
        """Modifies all; raises :class:`SwitchError` if the switch refuses any."""
        await self._write(p4r.Update.MODIFY, entities)

    async def delete(self, entities: Sequence[p4entity.P4Entity]) -> None:
        """Deletes all that are there; it is no error if some are not."""
        await self._write(p4r.Update.DELETE, entities, missing_ok=True)

    async def read(self, entities: Sequence[p4entity.P4Entity]) -> list[Any]:
        """Returns the finsy entities that match ``entities`` (P4Runtime wildcards)."""
        self._check()
        request = p4r.ReadRequest(
            device_id=self.device_id,
            entities=p4entity.encode_entities(entities, self._schema),
        )
        with self._hanging_up():
            try:
                return [
                    p4entity.decode_entity(entity, self._schema)
                    async for reply in self._client.request_iter(request)
                    for entity in reply.entities
                ]
            except P4ClientError as error:
                raise self._translate(error) from None

    async def _write(
        self,
        kind: p4r.Update.Type.ValueType,
        entities: Iterable[p4entity.P4Entity],
        *,
        missing_ok: bool = False,
    ) -> None:
        self._check()
        encoded = []
        for entity in entities:
            try:
                encoded += p4entity.encode_entities([entity], self._schema)
            except ValueError as error:  # a value with too many bits, say
                if not missing_ok:  # what cannot be said cannot be there
                    refusal = self._error(str(error))
                    refusal.refused = True
                    raise refusal from None
        if not encoded:
            return
        updates = [p4r.Update(type=kind, entity=entity) for entity in encoded]
        request = p4r.WriteRequest(device_id=self.device_id, updates=updates)
        with self._hanging_up():
            try:
                await self._client.request(request)
            except P4ClientError as error:
                if not (missing_ok and error.is_not_found_only):
                    raise self._translate(error) from None

    async def _until(self, *, primary: bool) -> None:
        while self.is_primary is not primary:
            self._check()
            self._changed.clear()
            await self._changed.wait()
        self._check()

    async def _arbitrate_in_time(self, timeout_s: float, *, anonymous: bool) -> None:
        arbitrated = asyncio.ensure_future(self._arbitrate(anonymous=anonymous))
        trouble = None
        try:
            await asyncio.wait([arbitrated], timeout=min(timeout_s, TLS_PATIENCE_S))
            if not arbitrated.done():  # gRPC tries again whatever the reason: ask for it
                trouble = await asyncio.to_thread(tls_trouble, self.address, self._tls)
            await asyncio.wait_for(arbitrated, 0 if trouble else timeout_s)
        except asyncio.TimeoutError:
            raise self._error(trouble or f"no answer within {timeout_s:g} s") from None
        finally:
            arbitrated.cancel()

    async def _arbitrate(self, *, anonymous: bool) -> None:
        await self._client.open(complete_request=self._sign)
        try:
            await self._elect(0 if anonymous else self._own_id)
            while not self._decided:
                await self._take_election((await self._client.receive()).arbitration)
        except P4ClientError as error:
            raise self._translate(error) from None
        except RuntimeError:  # the stream ended without a status
            raise self._error("it closed the stream") from None
        if not self.is_primary and not self._standby:
            raise self._error(self.who_is_primary())

    async def _elect(self, election_id: int) -> None:
        self.election_id = election_id
        update = p4r.MasterArbitrationUpdate(device_id=self.device_id)
        if election_id:
            update.election_id.CopyFrom(U128.encode(election_id))
        await self._client.send(p4r.StreamMessageRequest(arbitration=update))

    async def _take_election(self, update: p4r.MasterArbitrationUpdate) -> None:
        highest = U128.decode(update.election_id)
        code = update.status.code
        self.is_primary = code == rpc_code.OK
        self._primary_id = highest if code == rpc_code.ALREADY_EXISTS else 0
        self._decided = code != rpc_code.NOT_FOUND
        self._changed.set()
        if not self._decided:
            # Nobody is primary, and only the highest id ever seen, or a higher one, can be. Adding
            # the configured one keeps several backups that do so at once apart.
            await self._elect(max(highest, self.election_id) + self._own_id)

    async def _listen(self) -> None:
        """Reads the stream, so that it never blocks the switch, and learns when it ends."""
        try:
            while True:
                message = await self._client.receive()
                self.heard_s = time.monotonic()
                if message.HasField("arbitration"):
                    await self._take_election(message.arbitration)
        except P4ClientError as error:
            self._end(str(self._translate(error)))
        finally:
            self._end(str(self._error("it closed the stream")))

    async def _probe(self) -> None:
        """A machine that loses power says nothing on the stream either."""
        while self.lost is None:
            await asyncio.sleep(PROBE_S)
            try:
                if not self._busy:
                    await self._cookie()
                    self.heard_s = time.monotonic()
            except SwitchError as error:
                self._end(str(error))

    def _end(self, why: str) -> None:
        if self.lost is None:
            self.lost = why
        self.is_primary = False
        self._changed.set()

    async def _cookie(self) -> int | None:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY,
        )
        try:
            with self._hanging_up():
                reply = await self._client.request(request)
        except P4ClientError as error:
            if error.code == finsy.GRPCStatusCode.FAILED_PRECONDITION:
                return None  # no pipeline is set
            raise self._translate(error) from None
        return reply.config.cookie.cookie if reply.config.HasField("cookie") else None

    def _sign(self, message: Any) -> None:
        """Writes carry the election id: the switch refuses those of a former primary."""
        if isinstance(message, p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest):
            primary_id = self._primary_id if self.writes_for_primary else 0
            message.election_id.CopyFrom(U128.encode(primary_id or self.election_id))

    @contextmanager
    def _hanging_up(self) -> Iterator[None]:
        """A call whose channel is closed meanwhile has failed.

        gRPC tells it as if its task had been cancelled; then the task would end without a word.
        """
        try:
            yield
        except asyncio.CancelledError:
            task: Any = asyncio.current_task()
            is_cancelled = hasattr(task, "cancelling") and task.cancelling()  # from 3.11 on
            if self.lost is None or is_cancelled:
                raise
            raise SwitchError(self.lost) from None

    def _check(self) -> None:
        if self.lost is not None:
            raise SwitchError(self.lost)

    def _translate(self, error: P4ClientError) -> SwitchError:
        details = next(iter(error.details.values()), None)
        message = error.message if details is None else details.message
        translated = self._error(f"{message or error.code.name}")
        translated.refused = details is not None
        return translated

    def _error(self, what: str) -> SwitchError:
        return SwitchError(f"switch {self.address} device {self.device_id}: {what}")


def _is_id_used(error: BaseException) -> bool:
    said = str(error).lower()
    return isinstance(error, SwitchError) and ("already used" in said or "already exists" in said)
