"""A P4Runtime client close to the wire, so that tests can also say what no good client would."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc, rpc_code, rpc_status
from google.protobuf import text_format

DEADLINE_S = 20
PROGRAMS = Path(__file__).parents[2] / "switch/p4runtime/programs"
DEVICE = 1


def p4info_of(program: str) -> p4i.P4Info:
    return text_format.Parse((PROGRAMS / f"{program}.p4info.txtpb").read_text(), p4i.P4Info())


def config_of(program: str, cookie: int = 0) -> p4r.ForwardingPipelineConfig:
    """Of one of tests/switch/p4runtime/programs."""
    config = p4r.ForwardingPipelineConfig(
        p4info=p4info_of(program), p4_device_config=(PROGRAMS / f"{program}.json").read_bytes()
    )
    if cookie:
        config.cookie.cookie = cookie
    return config


def features_p4info() -> p4i.P4Info:
    return p4info_of("features")


def features_config(cookie: int = 0) -> p4r.ForwardingPipelineConfig:
    return config_of("features", cookie)


class Ids:
    """P4Info ids by the last part of a name."""

    def __init__(self, info: p4i.P4Info) -> None:
        self.table = _by_name(info.tables)
        self.action = _by_name(info.actions)
        self.counter = _by_name(info.counters)


def _by_name(objects: Any) -> dict[str, int]:
    return {o.preamble.name.rsplit(".", 1)[-1]: o.preamble.id for o in objects}


IDS = Ids(features_p4info())


class Client:
    """One channel, and at most one stream."""

    def __init__(self, addr: str, election_id: int | None = None, role: str = "") -> None:
        self.channel = grpc.insecure_channel(addr)
        self.stub = p4r_grpc.P4RuntimeStub(self.channel)
        self.election_id = election_id
        self.role = role
        self._requests: queue.SimpleQueue[p4r.StreamMessageRequest | None] = queue.SimpleQueue()
        self._responses: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._stream: Any = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        self._stream = self.stub.StreamChannel(iter(self._requests.get, None))
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def _receive(self) -> None:
        try:
            for response in self._stream:
                self._responses.put(response)
            self._responses.put(None)
        except grpc.RpcError as error:
            self._responses.put(error)

    def send(self, request: p4r.StreamMessageRequest) -> None:
        if self._stream is None:
            self.open()
        self._requests.put(request)

    def arbitrate(self, election_id: int | None, device_id: int = DEVICE) -> None:
        message = p4r.MasterArbitrationUpdate(device_id=device_id)
        if election_id is not None:
            message.election_id.CopyFrom(U128.encode(election_id))
        if self.role:
            message.role.name = self.role
        self.election_id = election_id
        self.send(p4r.StreamMessageRequest(arbitration=message))

    def receive(self) -> p4r.StreamMessageResponse:
        """The next response; raises the RpcError that ended the stream."""
        response = self._responses.get(timeout=DEADLINE_S)
        if isinstance(response, Exception):
            raise response
        assert response is not None, "the stream ended"
        assert isinstance(response, p4r.StreamMessageResponse)
        return response

    def standing(self) -> tuple[int, int]:
        """Status code and election id of the next arbitration update."""
        update = self.receive().arbitration
        return update.status.code, U128.decode(update.election_id)

    def nothing_more(self) -> bool:
        """Whether no response is waiting once a round trip has passed."""
        self.stub.Capabilities(p4r.CapabilitiesRequest(), timeout=DEADLINE_S)
        return self._responses.empty()

    def become_primary(self, election_id: int = 1) -> Client:
        self.arbitrate(election_id)
        assert self.standing() == (rpc_code.OK, election_id)
        return self

    def set_config(
        self,
        config: p4r.ForwardingPipelineConfig | None,
        action: int = p4r.SetForwardingPipelineConfigRequest.VERIFY_AND_COMMIT,
        device_id: int = DEVICE,
    ) -> None:
        request = p4r.SetForwardingPipelineConfigRequest(
            device_id=device_id,
            role=self.role,
            election_id=U128.encode(self.election_id or 0),
            action=action,  # type: ignore[arg-type]
            config=config,
        )
        self.stub.SetForwardingPipelineConfig(request, timeout=60)

    def get_config(self, response_type: int = 0) -> p4r.GetForwardingPipelineConfigResponse:
        request = p4r.GetForwardingPipelineConfigRequest(
            device_id=DEVICE,
            response_type=response_type,  # type: ignore[arg-type]
        )
        return self.stub.GetForwardingPipelineConfig(request, timeout=DEADLINE_S)

    def write_updates(self, updates: list[p4r.Update], **fields: Any) -> None:
        request = p4r.WriteRequest(
            device_id=DEVICE,
            role=self.role,
            election_id=U128.encode(self.election_id or 0),
            updates=updates,
        )
        for name, value in fields.items():
            setattr(request, name, value)
        self.stub.Write(request, timeout=DEADLINE_S)

    def write(self, kind: str, **entity: Any) -> None:
        self.write_updates([update(kind, **entity)])

    def read(self, **entity: Any) -> list[p4r.Entity]:
        return self.read_all([p4r.Entity(**entity)])

    def read_all(self, entities: list[p4r.Entity]) -> list[p4r.Entity]:
        return list(self.read_stream(entities))

    def read_stream(self, entities: list[p4r.Entity]) -> Iterator[p4r.Entity]:
        request = p4r.ReadRequest(device_id=DEVICE, entities=entities)
        for response in self.stub.Read(request, timeout=DEADLINE_S):
            yield from response.entities

    def tables(self, **fields: Any) -> list[p4r.TableEntry]:
        return [e.table_entry for e in self.read(table_entry=p4r.TableEntry(**fields))]

    def close(self) -> None:
        self._requests.put(None)
        if self._stream is not None:
            self._stream.cancel()
        if self._thread is not None:
            self._thread.join(DEADLINE_S)
        self.channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def update(kind: str, **entity: Any) -> p4r.Update:
    return p4r.Update(type=p4r.Update.Type.Value(kind), entity=p4r.Entity(**entity))


def entry(
    table: str, action: str = "", params: tuple[bytes, ...] = (), ids: Ids = IDS, **fields: Any
) -> p4r.TableEntry:
    message = p4r.TableEntry(table_id=ids.table[table], **fields)
    if action:
        message.action.action.action_id = ids.action[action]
        for i, value in enumerate(params):
            message.action.action.params.add(param_id=i + 1, value=value)
    return message


def exact(value: bytes, field_id: int = 1) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field_id, exact=p4r.FieldMatch.Exact(value=value))


def lpm(value: bytes, prefix_len: int, field_id: int = 1) -> p4r.FieldMatch:
    return p4r.FieldMatch(
        field_id=field_id, lpm=p4r.FieldMatch.LPM(value=value, prefix_len=prefix_len)
    )


def ternary(value: bytes, mask: bytes, field_id: int = 1) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field_id, ternary=p4r.FieldMatch.Ternary(value=value, mask=mask))


def between(low: bytes, high: bytes, field_id: int = 2) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field_id, range=p4r.FieldMatch.Range(low=low, high=high))


def optional(value: bytes, field_id: int = 3) -> p4r.FieldMatch:
    return p4r.FieldMatch(field_id=field_id, optional=p4r.FieldMatch.Optional(value=value))


def code_of(error: grpc.RpcError) -> int:
    """google.rpc code of a failed RPC."""
    return int(error.code().value[0])


def errors_of(error: grpc.RpcError) -> list[p4r.Error]:
    """The p4.v1.Error of each update, out of the trailing metadata."""
    metadata: Any = dict(error.trailing_metadata())  # type: ignore[arg-type]
    status = rpc_status.Status.FromString(metadata["grpc-status-details-bin"])
    assert status.code == code_of(error)
    assert status.message == error.details()
    found = []
    for detail in status.details:
        message = p4r.Error()
        assert detail.Unpack(message)
        found.append(message)
    return found
