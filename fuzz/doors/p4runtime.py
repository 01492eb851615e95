"""P4Runtime messages at the soft switch's server, in this process: no gRPC, no socket.

A record is a request of the method of that number; of StreamChannel, all that follow are the
stream. Programs have a door of their own, so a configuration always brings one that is known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, rpc_code, rpc_status
from google.protobuf import text_format
from google.protobuf.message import DecodeError, Message

from fuzz.doors.promise import promise
from fuzz.records import read_records
from ina.switch.p4runtime import Device, P4RuntimeService
from ina.switch.p4runtime.arbitration import Client
from ina.switch.p4runtime.handlers import method_handlers
from ina.switch.p4runtime.status import DETAILS_KEY
from ina.switch.targets import default_target

DEVICE = 1
ELECTION = 5
"""The primary's election id while an input comes in; an input may win the next."""
STREAM = "StreamChannel"
REQUESTS: dict[str, type[Message]] = {
    "Write": p4r.WriteRequest,
    "Read": p4r.ReadRequest,
    "SetForwardingPipelineConfig": p4r.SetForwardingPipelineConfigRequest,
    "GetForwardingPipelineConfig": p4r.GetForwardingPipelineConfigRequest,
    "Capabilities": p4r.CapabilitiesRequest,
    STREAM: p4r.StreamMessageRequest,
}
METHODS = list(REQUESTS)
"""By the number in a record."""
PROGRAM = Path(__file__).parents[2] / "tests" / "switch" / "p4runtime" / "programs" / "features"
_BUGS = (rpc_code.INTERNAL, rpc_code.DATA_LOSS)


class Aborted(Exception):  # noqa: N818 (what a context raises is not an error of ours)
    """A call's end, as gRPC has it."""


class Context:
    """What a call's servicer needs of gRPC."""

    def __init__(self) -> None:
        self.details: list[int] = []
        """Codes of the single updates."""

    def peer(self) -> str:
        """Who calls."""
        return "ipv4:127.0.0.1:1"

    def add_callback(self, _callback: Callable[[], None]) -> bool:
        """Never called: the call ends before gRPC would."""
        return True

    def set_trailing_metadata(self, metadata: tuple[tuple[str, bytes], ...]) -> None:
        """Keeps the codes of the updates."""
        status = rpc_status.Status.FromString(dict(metadata)[DETAILS_KEY])
        for detail in status.details:
            error = p4r.Error()
            promise(detail.Unpack(error), "an update's fate is a p4.v1.Error")
            self.details.append(error.canonical_code)

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        """Ends the call. Its code and its words must be of use to the caller."""
        number = int(code.value[0])
        promise(details and details.isprintable(), f"a refusal is one line: {details[:200]!r}")
        promise(number not in _BUGS, f"a caller's mistake is no bug of ours: {code} {details}")
        promise(
            number != rpc_code.UNKNOWN or self.details,
            f"an unknown error tells of each update: {details}",
        )
        for each in self.details:
            promise(each not in (*_BUGS, rpc_code.UNKNOWN), f"nor in one update: {details}")
        raise Aborted


@cache
def known_config() -> p4r.ForwardingPipelineConfig:
    """Of the program whose P4Info has one of everything."""
    info = text_format.Parse(PROGRAM.with_suffix(".p4info.txtpb").read_text(), p4i.P4Info())
    config = p4r.ForwardingPipelineConfig(
        p4info=info, p4_device_config=PROGRAM.with_suffix(".json").read_bytes()
    )
    return config


@cache
def template() -> Device:
    """A device with the program, of which others get theirs without compiling."""
    device = Device(
        DEVICE, default_target(), install=lambda _pipeline: None, inject=lambda _packet: False
    )
    device.preload(known_config())
    return device


class Bench:
    """A device with its program, as at power-on, and a primary client."""

    def __init__(self) -> None:
        self.device = Device(
            DEVICE, default_target(), install=lambda _pipeline: None, inject=self._inject
        )
        self.device._commit(template().load(known_config()))  # what preload() does besides loading
        handlers = method_handlers(P4RuntimeService(self.device))
        self._handlers = {name: _handler_of(handlers, name) for name in METHODS}

    def enter(self, data: bytes) -> None:
        """One input."""
        primary = Client(lambda _response: None)
        self.device.arbitrate(
            primary,
            p4r.MasterArbitrationUpdate(device_id=DEVICE, election_id=U128.encode(ELECTION)),
        )
        self._answer(data)
        entities, results = self.device.read([p4r.Entity(table_entry=p4r.TableEntry())])
        promise(not any(results), "what is in the tables can be read")
        promise(all(each.table_entry.table_id for each in entities), "entries are of tables")

    def close(self) -> None:
        """Frees the pipelines."""
        self.device.close()

    def _answer(self, data: bytes) -> None:
        stream: list[bytes] = []
        for number, request in read_records(data):
            name = METHODS[number % len(METHODS)]
            if name == STREAM:
                stream.append(request)
            else:
                self.call(name, _with_known_program(name, request))
        if stream:
            self.call(STREAM, iter(stream))

    def call(self, name: str, request: bytes | Iterator[bytes]) -> list[Any]:
        """One call; what it answered before it ended."""
        handler: Any = self._handlers[name]
        answers: list[Any] = []
        try:
            if name in (STREAM, "Read"):
                kind = handler.stream_stream if name == STREAM else handler.unary_stream
                answers.extend(kind(request, Context()))
            else:
                answers.append(handler.unary_unary(request, Context()))
        except Aborted:
            pass
        for answer in answers:
            handler.response_serializer(answer)
        return answers

    def _inject(self, packet: bytes) -> bool:
        promise(len(packet) <= 0xFFFF, "a packet-out fits a frame")
        return True


class _Details:
    """What a generic handler asks of a call."""

    def __init__(self, name: str) -> None:
        self.method = f"/p4.v1.P4Runtime/{name}"
        self.invocation_metadata = ()


def _handler_of(handlers: Any, name: str) -> Any:
    return handlers.service(_Details(name))


def _with_known_program(name: str, request: bytes) -> bytes:
    if name != "SetForwardingPipelineConfig":
        return request
    try:
        message = p4r.SetForwardingPipelineConfigRequest.FromString(request)
    except DecodeError:
        return request
    if message.config.p4_device_config:
        message.config.p4_device_config = known_config().p4_device_config
    if not message.config.p4info.tables and message.config.HasField("p4info"):
        # Short inputs say that they bring the P4Info, and what they change of it.
        changes = message.config.p4info
        whole = p4i.P4Info()
        whole.CopyFrom(known_config().p4info)
        whole.MergeFrom(changes)
        message.config.p4info.CopyFrom(whole)
    return message.SerializeToString()


def enter(data: bytes) -> None:
    """One input, at a device as at power-on."""
    bench = Bench()
    try:
        bench.enter(data)
    finally:
        bench.close()
