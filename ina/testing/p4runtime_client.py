"""A small synchronous P4Runtime client: what a conformance test writes and reads."""

from __future__ import annotations

import functools
import queue
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import finsy
import grpc
from finsy import p4entity
from finsy.proto import U128, p4r, p4r_grpc, rpc_code, rpc_status

from ina.controller.switches.southbound.p4runtime_switch import in_pipe
from ina.rpc.channel import let_go
from ina.tables.values import (
    AnyItem,
    CloneSession,
    Count,
    Counter,
    CounterRef,
    DefaultAction,
    Entry,
    Group,
)
from ina.testing.device import Program
from ina.testing.errors import DeviceError

DEADLINE_S = 20.0
PIPELINE_DEADLINE_S = 120.0
_MAX_MESSAGE_BYTES = 128 << 20
_BATCH = 256  # updates in one Write


class P4RuntimeClient:
    """A primary client of one device. From construction to :meth:`close`."""

    def __init__(self, address: str, device_id: int, *, connect_s: float = DEADLINE_S) -> None:
        """Connects to ``host:port`` or ``unix:PATH`` and becomes primary. Raises DeviceError."""
        self.packet_ins: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        """Payloads of packet-ins, with their controller header in front as the program emits it."""
        self._name = f"P4Runtime device {device_id} at {address}"
        self._device_id = device_id
        self._schema = finsy.P4Schema()
        self._election_id = 1
        self._updates: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        options = [("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES)]
        self._channel = grpc.insecure_channel(address, options)
        try:
            grpc.channel_ready_future(self._channel).result(connect_s)
        except grpc.FutureTimeoutError:
            self._channel.close()
            raise DeviceError(f"{self._name}: no answer within {connect_s:g} s") from None
        self._stub: Any = p4r_grpc.P4RuntimeStub(self._channel)
        self._stream: Any = self._stub.StreamChannel(iter(self._requests.get, None))
        self._listener = threading.Thread(target=self._listen, name="p4runtime-in", daemon=True)
        self._listener.start()
        try:
            self._become_primary()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Ends stream and channel; the device keeps its state."""
        self._requests.put(None)
        self._stream.cancel()
        self._channel.close()
        self._listener.join(DEADLINE_S)
        # Freed now: at the interpreter's end gRPC's thread may be stopped while it has their locks.
        del self._stream, self._stub, self._channel

    def set_pipeline(self, program: Program) -> None:
        """Loads the program, also where it runs already: all state is as at power-on."""
        # BMv2 forgets its groups' numbers then, but goes on copying packets to their ports.
        self.delete(self._groups())
        self._schema = _schema(program.p4info, program.bmv2_json)
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=self._device_id,
            election_id=U128.encode(self._election_id),
            action=p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
            config=self._schema.get_pipeline_config(),
        )
        self._call(self._stub.SetForwardingPipelineConfig, request, PIPELINE_DEADLINE_S)

    def insert(self, items: Sequence[AnyItem]) -> None:
        """Writes entries and groups, and sets default actions. Raises DeviceError."""
        self._write([(p4r.Update.INSERT, item) for item in items])

    def delete(self, items: Sequence[AnyItem]) -> None:
        """Takes them off; default actions go back to the program's own. Raises DeviceError."""
        self._write([(p4r.Update.DELETE, _without_action(item)) for item in items])

    def modify(self, groups: Sequence[Group]) -> None:
        """Gives groups that are there other copies. Raises DeviceError."""
        self._write([(p4r.Update.MODIFY, group) for group in groups])

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """Reads counters, each by its own entity: not every device knows wildcards."""
        counts: list[Count] = []
        for start in range(0, len(refs), _BATCH):
            wanted = refs[start : start + _BATCH]
            found = self._read([self._counter_entity(ref) for ref in wanted])
            if len(found) != len(wanted):
                raise DeviceError(f"{self._name}: {len(wanted)} counters asked, {len(found)} given")
            counts += [Count(entity.packet_count, entity.byte_count) for entity in found]
        return counts

    def packet_out(self, packet: bytes, egress_port: int) -> None:
        """Sends a frame out of a port, past the tables."""
        entity = p4entity.P4PacketOut(packet, egress_port=egress_port, padding=0)
        self._requests.put(entity.encode_update(self._schema))

    def _groups(self) -> list[Group]:
        try:
            groups = self._read([p4entity.P4MulticastGroupEntry()])
        except DeviceError as error:
            if "FAILED_PRECONDITION" in str(error):
                return []  # no pipeline is set
            raise
        return [Group(group.multicast_group_id, ()) for group in groups]

    def _become_primary(self) -> None:
        for _ in range(3):
            update = p4r.MasterArbitrationUpdate(
                device_id=self._device_id, election_id=U128.encode(self._election_id)
            )
            self._requests.put(p4r.StreamMessageRequest(arbitration=update))
            try:
                answer = self._updates.get(timeout=DEADLINE_S)
            except queue.Empty:
                raise DeviceError(f"{self._name}: no answer to arbitration") from None
            if isinstance(answer, str):
                raise DeviceError(f"{self._name}: {answer}")
            if answer.status.code == rpc_code.OK:
                return
            # Somebody was primary with a higher id, and may be there still: outbid him.
            self._election_id = U128.decode(answer.election_id) + 1
        raise DeviceError(f"{self._name}: another client stays primary")

    def _listen(self) -> None:
        try:
            for message in self._stream:
                if message.HasField("arbitration"):
                    self._updates.put(message.arbitration)
                elif message.HasField("packet"):
                    self.packet_ins.put(self._with_header(message.packet))
        except grpc.RpcError as error:
            let_go(error)
            self._updates.put(f"the stream ended: {_reason(error)}")

    @staticmethod
    def _with_header(packet: p4r.PacketIn) -> bytes:
        """The ingress port (metadata 1, 9 bits) and 7 bits of padding, in front of the frame."""
        port = next(int.from_bytes(m.value, "big") for m in packet.metadata if m.metadata_id == 1)
        return (port << 7).to_bytes(2, "big") + packet.payload

    def _write(self, wanted: Sequence[tuple[Any, AnyItem]]) -> None:
        updates = []
        for kind, item in wanted:
            if isinstance(item, DefaultAction):
                kind = p4r.Update.MODIFY  # a default action is always there
            for entity in p4entity.encode_entities([self._entity(item)], self._schema):
                updates.append(p4r.Update(type=kind, entity=entity))
        for start in range(0, len(updates), _BATCH):
            request = p4r.WriteRequest(
                device_id=self._device_id,
                election_id=U128.encode(self._election_id),
                updates=updates[start : start + _BATCH],
            )
            self._call(self._stub.Write, request, DEADLINE_S)

    def _read(self, entities: Sequence[p4entity.P4Entity]) -> list[Any]:
        request = p4r.ReadRequest(
            device_id=self._device_id,
            entities=p4entity.encode_entities(entities, self._schema),
        )
        try:
            return [
                p4entity.decode_entity(entity, self._schema)
                for reply in self._stub.Read(request, timeout=DEADLINE_S)
                for entity in reply.entities
            ]
        except grpc.RpcError as error:
            let_go(error)
            raise DeviceError(f"{self._name}: read: {_reason(error)}") from None

    def _entity(self, item: AnyItem) -> p4entity.P4Entity:
        tables, actions = self._schema.tables, self._schema.actions
        match item:
            case Entry(table, match, action, params, priority):
                return p4entity.P4TableEntry(
                    in_pipe(tables, table),
                    match=p4entity.P4TableMatch(match),
                    action=p4entity.P4TableAction(in_pipe(actions, action), **dict(params)),
                    priority=priority,
                )
            case DefaultAction(table, action, params):
                chosen = (
                    p4entity.P4TableAction(in_pipe(actions, action), **dict(params))
                    if action
                    else None
                )
                return p4entity.P4TableEntry(
                    in_pipe(tables, table), action=chosen, is_default_action=True
                )
            case Group(number, replicas):
                return p4entity.P4MulticastGroupEntry(number, replicas=replicas)
            case CloneSession(number, replicas):
                return p4entity.P4CloneSessionEntry(number, replicas=replicas)
            case CloneSession(number, replicas):
                return p4entity.P4CloneSessionEntry(number, replicas=replicas)

    def _counter_entity(self, ref: CounterRef) -> p4entity.P4Entity:
        if isinstance(ref, Counter):
            return p4entity.P4CounterEntry(
                in_pipe(self._schema.counters, ref.name), index=ref.index
            )
        table = in_pipe(self._schema.tables, ref.table)
        entry = p4entity.P4TableEntry(table, match=p4entity.P4TableMatch(ref.match))
        return p4entity.P4DirectCounterEntry(table_entry=entry)

    def _call(self, method: Any, request: Any, deadline_s: float) -> None:
        try:
            method(request, timeout=deadline_s)
        except grpc.RpcError as error:
            what = type(request).__name__.removesuffix("Request")
            raise DeviceError(f"{self._name}: {what}: {_reason(error)}") from None


@functools.lru_cache(maxsize=4)
def _schema(p4info: Path, bmv2_json: Path) -> finsy.P4Schema:
    """Reading the P4Info of a large program takes a while."""
    return finsy.P4Schema(p4info, bmv2_json)


def _reason(error: Any) -> str:
    """The status, and where an update of a Write was refused, why."""
    said = [f"{error.code().name} {error.details()}"]
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in rpc_status.Status.FromString(value).details:
                update = p4r.Error()
                if detail.Unpack(update) and update.canonical_code:
                    said.append(f"code {update.canonical_code} {update.message}")
    return "; ".join(said)


def _without_action(item: AnyItem) -> AnyItem:
    return DefaultAction(item.table, "") if isinstance(item, DefaultAction) else item
