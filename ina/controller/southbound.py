"""One P4Runtime session with one switch: election, pipeline, writes, reads.

Every call has a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterable, Sequence
from typing import Any

import finsy
import grpc
from finsy import p4entity
from finsy.p4client import P4Client, P4ClientError
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

from ina.controller.errors import SwitchError
from ina.p4 import CompiledProgram

_log = logging.getLogger(__name__)

CONNECT_TIMEOUT_S = 10.0
FORMER_SELF_ATTEMPTS, FORMER_SELF_PAUSE_S = 10, 0.1
"""A controller that starts again may be faster than the switch's news that its stream has ended."""
PIPELINE_TIMEOUT_S = 120.0
"""A soft switch compiles the program to native code when it sees it for the first time."""


class P4RuntimeSession:
    """A connected session, as primary. Use :meth:`connect`; :meth:`close` ends it."""

    def __init__(self, address: str, device_id: int, election_id: int) -> None:
        self.address = address
        self.device_id = device_id
        self._election_id = election_id
        self._schema = finsy.P4Schema()
        self._client = P4Client(address)
        self._listener: asyncio.Task[None] | None = None
        self._lost: str | None = None

    @classmethod
    async def connect(
        cls,
        address: str,
        device_id: int,
        *,
        election_id: int = 1,
        timeout_s: float = CONNECT_TIMEOUT_S,
    ) -> P4RuntimeSession:
        """Connects to the P4Runtime server at ``address`` (``host:port``) and becomes primary.

        Raises :class:`SwitchError`: nobody answers, or another controller is primary.
        """
        for attempt in range(FORMER_SELF_ATTEMPTS):
            session = cls(address, device_id, election_id)
            try:
                await asyncio.wait_for(session._arbitrate(), timeout_s)
                break
            except asyncio.TimeoutError:
                await session.close()
                raise session._error(f"no answer within {timeout_s:g} s") from None
            except BaseException as error:
                await session.close()
                last = attempt + 1 == FORMER_SELF_ATTEMPTS
                if last or not isinstance(error, SwitchError) or "already used" not in str(error):
                    raise
            await asyncio.sleep(FORMER_SELF_PAUSE_S)
        session._listener = asyncio.create_task(session._listen())
        return session

    async def close(self) -> None:
        """Ends the session; the switch keeps its entries."""
        if self._listener is not None:
            self._listener.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._listener
        await self._client.close()

    async def set_pipeline(self, program: CompiledProgram) -> bool:
        """Sets the program if the switch runs another; returns whether it did.

        Setting a pipeline clears all tables, groups, counters and registers.
        """
        self._schema = finsy.P4Schema(program.p4info, program.bmv2_json)
        if await self._cookie() == self._schema.p4cookie:
            return False
        channel = self._client.channel
        assert channel is not None
        stub: Any = p4r_grpc.P4RuntimeStub(channel)
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._schema.get_pipeline_config(),
        )
        self._sign(request)
        try:
            await stub.SetForwardingPipelineConfig(request, timeout=PIPELINE_TIMEOUT_S)
        except grpc.RpcError as error:
            raise self._translate(P4ClientError(error, "set pipeline")) from None
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
        encoded = p4entity.encode_entities(entities, self._schema)
        if not encoded:
            return
        updates = [p4r.Update(type=kind, entity=entity) for entity in encoded]
        try:
            await self._client.request(p4r.WriteRequest(device_id=self.device_id, updates=updates))
        except P4ClientError as error:
            if not (missing_ok and error.is_not_found_only):
                raise self._translate(error) from None

    async def _arbitrate(self) -> None:
        await self._client.open(complete_request=self._sign)
        update = p4r.MasterArbitrationUpdate(
            device_id=self.device_id, election_id=U128.encode(self._election_id)
        )
        try:
            await self._client.send(p4r.StreamMessageRequest(arbitration=update))
            reply = await self._client.receive()
        except P4ClientError as error:
            raise self._translate(error) from None
        except RuntimeError:  # the stream ended without a status
            raise self._error("it closed the stream") from None
        self._check_election(reply.arbitration)

    async def _listen(self) -> None:
        """Reads the stream, so that it never blocks the switch, and learns when it ends."""
        try:
            while True:
                message = await self._client.receive()
                if message.HasField("arbitration"):
                    self._check_election(message.arbitration)
        except P4ClientError as error:
            self._lost = str(self._translate(error))
        except SwitchError as error:
            self._lost = str(error)
        except RuntimeError:
            self._lost = str(self._error("it closed the stream"))
        _log.error("%s", self._lost)

    async def _cookie(self) -> int | None:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=self.device_id,
            response_type=p4r.GetForwardingPipelineConfigRequest.COOKIE_ONLY,
        )
        try:
            reply = await self._client.request(request)
        except P4ClientError as error:
            if error.code == finsy.GRPCStatusCode.FAILED_PRECONDITION:
                return None  # no pipeline is set
            raise self._translate(error) from None
        return reply.config.cookie.cookie if reply.config.HasField("cookie") else None

    def _sign(self, message: Any) -> None:
        """Writes carry the election id: the switch refuses those of a former primary."""
        if isinstance(message, p4r.WriteRequest | p4r.SetForwardingPipelineConfigRequest):
            message.election_id.CopyFrom(U128.encode(self._election_id))

    def _check(self) -> None:
        if self._lost is not None:
            raise SwitchError(self._lost)

    def _check_election(self, update: p4r.MasterArbitrationUpdate) -> None:
        if update.status.code != rpc_code.OK:
            primary = U128.decode(update.election_id)
            raise self._error(f"another controller is primary (election id {primary})")

    def _translate(self, error: P4ClientError) -> SwitchError:
        details = next(iter(error.details.values()), None)
        message = error.message if details is None else details.message
        return self._error(f"{message or error.code.name}")

    def _error(self, what: str) -> SwitchError:
        return SwitchError(f"switch {self.address} device {self.device_id}: {what}")
