"""Workers' calls to a controller, without sockets: the shipped services answer, messages travel.

A call has its caller's deadline, at both ends. A lost message is one that the caller waits for
until then; a lost message of a stream breaks it. Where no controller runs, calls are refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any, NoReturn

import grpc
from google.protobuf.message import Message

from ina.controller.service.switchboard import Switchboard
from ina.controller.watch.leases import LeaseTable
from ina.host.member.client import CallError
from ina.sim.messages import Path, Wire
from ina.sim.process import Process

_SERVICE = "/ina.v1.Controller/"

Reply = Callable[[grpc.StatusCode, str, Message | None], None]


class _Ended(Exception):  # noqa: N818 (no error by itself)
    """What ``context.abort`` raises."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(details)
        self.code, self.details = code, details


class _Context:
    """Stands in for ``grpc.aio.ServicerContext``."""

    def __init__(self, deadline_s: float | None, begin: Callable[[], None]) -> None:
        self._deadline_s = deadline_s
        self._begin = begin

    def peer(self) -> str:
        """Who calls, in gRPC's form: none of its transports."""
        return "sim:"

    def time_remaining(self) -> float | None:
        """Until the caller's deadline."""
        if self._deadline_s is None:
            return None
        return max(0.0, self._deadline_s - asyncio.get_running_loop().time())

    async def abort(self, code: grpc.StatusCode, details: str = "") -> NoReturn:
        """Ends the call."""
        raise _Ended(code, details)

    async def send_initial_metadata(self, metadata: object) -> None:
        """Tells the caller that it is heard."""
        self._begin()


class Server:
    """An address at which a controller's process listens, or nobody does."""

    def __init__(self, address: str, lease_s: float) -> None:
        """``lease_s``: as configured; streams are pinged accordingly."""
        self.address = address
        leases = LeaseTable(lease_s)
        self.ping_s, self.ping_timeout_s = leases.ping_s, leases.ping_timeout_s
        self.process: Process | None = None
        self._switchboard: Switchboard | None = None

    def listen(self, process: Process, switchboard: Switchboard) -> None:
        """From now on, until the process dies."""
        self.process, self._switchboard = process, switchboard

    def close(self) -> None:
        """Nobody listens any more."""
        self.process = self._switchboard = None

    def handler(self, method: str) -> Any:
        """What the services that answer now have for a method."""
        assert self._switchboard is not None
        details: Any = SimpleNamespace(method=_SERVICE + method)
        return self._switchboard.service(details)


class Connection:
    """One client process's to one server, over a path. It is made anew whenever it is used."""

    def __init__(self, client: Process, server: Server, path: Path) -> None:
        self.client = client
        self.server = server
        self.path = path
        self._there, self._back = Wire(path, ">"), Wire(path, "<")
        self._served: dict[asyncio.Task[None], None] = {}
        self._known: Process | None = None  # the server's, which tells when it dies
        self._pending: dict[asyncio.Future[Any], None] = {}
        self.dies_silently = False
        """The client's host vanishes with it: nobody says that the connection has ended."""
        client.at_death(self._client_dies)

    async def call(self, method: str, request: Message, timeout_s: float) -> Any:
        """A call with one answer. Raises :class:`CallError`."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Any] = loop.create_future()
        self._pending[answer] = None
        data = request.SerializeToString(deterministic=True)

        def reply(code: grpc.StatusCode, details: str, message: Message | None) -> None:
            self._back.send(
                f"{method} {code.name}{f' {details}' if details else ''}",
                lambda: _set(answer, code, details, message),
            )

        serving: list[asyncio.Task[None]] = []

        def arrive() -> None:
            task = self._serve(method, type(request).FromString(data), timeout_s, answer, reply)
            if task is not None:
                serving.append(task)

        def hang_up() -> None:
            for task in serving:
                task.cancel()

        self._there.send(f"{method} {_short(request)}", arrive)
        try:
            await asyncio.wait([answer], timeout=timeout_s)
        except asyncio.CancelledError:
            self.client.check()
            self._there.end(f"{method} cancelled", hang_up)
            raise
        finally:
            self._pending.pop(answer, None)
            self.client.check()
            if not answer.done():
                answer.cancel()
        if answer.cancelled():
            raise CallError(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        return answer.result()

    def stream(self, method: str, request: Message) -> Stream:
        """A call with a stream of answers."""
        stream = Stream()
        self._pending[stream.ended] = None
        stream.ended.add_done_callback(lambda _: self._pending.pop(stream.ended, None))
        data = request.SerializeToString(deterministic=True)

        def arrive() -> None:
            self._serve_stream(method, type(request).FromString(data), stream)

        self._there.send(f"{method} {_short(request)}", arrive, lost=stream.breaks)
        return stream

    # -- at the server --

    def _serve(
        self, method: str, request: Message, timeout_s: float,
        answer: asyncio.Future[Any], reply: Reply,
    ) -> asyncio.Task[None] | None:  # fmt: skip
        process = self._listening(answer)
        if process is None:
            return None
        loop = asyncio.get_running_loop()
        context = _Context(loop.time() + timeout_s, lambda: None)
        handler = self.server.handler(method)

        async def work() -> None:
            code, details, message = grpc.StatusCode.OK, "", None
            try:
                message = await handler.unary_unary(request, context)
            except _Ended as ended:
                code, details = ended.code, ended.details
            process.check()
            reply(code, details, message)

        task = self._begin(process, work())
        deadline = loop.call_later(timeout_s, task.cancel)
        task.add_done_callback(lambda _: deadline.cancel())
        return task

    def _serve_stream(self, method: str, request: Message, stream: Stream) -> None:
        process = self._listening(stream.ended)
        if process is None:
            return
        handler = self.server.handler(method)
        back = self._back

        def begin() -> None:
            process.check()
            back.send(f"{method} begins", stream.begun.set, lost=stream.breaks)

        async def work() -> None:
            code, details = grpc.StatusCode.OK, ""
            context = _Context(None, begin)
            try:
                if handler.unary_stream is None:  # the refusal of a standby
                    await handler.unary_unary(request, context)
                else:
                    async for event in handler.unary_stream(request, context):
                        process.check()
                        self._send_event(event, stream)
            except _Ended as ended:
                code, details = ended.code, ended.details
            process.check()
            back.send(
                f"{method} {code.name} {details}",
                lambda: stream.ends(code, details),
                lost=stream.breaks,
            )

        task = self._begin(process, work())
        pings = self._begin(process, self._ping(task))
        task.add_done_callback(lambda _: pings.cancel())
        # Whoever ends the stream at its client's end is heard here in the end.
        stream.on_end(lambda: self._there.end(f"{method} ended", lambda: _cancel(task)))

    def _send_event(self, event: Message, stream: Stream) -> None:
        copy = type(event).FromString(event.SerializeToString())
        self._back.send(_short(event), lambda: stream.takes(copy), lost=stream.breaks)

    async def _ping(self, stream: asyncio.Task[None]) -> None:
        """A client that does not answer for so long has gone."""
        while not stream.done():
            await asyncio.sleep(self.server.ping_s)
            if self._is_silent():
                await asyncio.sleep(self.server.ping_timeout_s)
                if self._is_silent():
                    stream.cancel()

    def _is_silent(self) -> bool:
        return self.path.is_cut or self.client.is_dead or self.client.is_stopped

    def _listening(self, answer: asyncio.Future[Any]) -> Process | None:
        process = self.server.process
        if process is None or process.is_dead:
            details = "connection refused"
            self._back.send(
                f"{details}", lambda: _set(answer, grpc.StatusCode.UNAVAILABLE, details, None)
            )
            return None
        return process

    def _begin(self, process: Process, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = process.spawn(work)
        if process is not self._known:
            self._known = process
            process.at_death(self._server_dies)
        self._served[task] = None
        task.add_done_callback(lambda ended: self._served.pop(ended, None))
        return task

    # -- ends --

    def _server_dies(self) -> None:
        pending = list(self._pending)

        def heard() -> None:
            for answer in pending:
                _set(answer, grpc.StatusCode.UNAVAILABLE, "Socket closed", None)

        if pending:
            self._back.end("connection", heard)

    def _client_dies(self) -> None:
        if self.dies_silently:
            return

        def heard() -> None:
            for task in list(self._served):
                task.cancel()

        self._there.end("connection", heard)


class Stream:
    """The client's end of a stream; an asynchronous iterator. Raises :class:`CallError`."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.begun = asyncio.Event()
        self.ended: asyncio.Future[Any] = loop.create_future()
        self._events: asyncio.Queue[Any] = asyncio.Queue()
        self.ended.add_done_callback(lambda _: self._events.put_nowait(None))

    def on_end(self, function: Callable[[], None]) -> None:
        """Calls it when the stream has ended here."""
        if self.ended.done():
            function()
        else:
            self.ended.add_done_callback(lambda _: function())

    def takes(self, event: Any) -> None:
        """An event has arrived."""
        if not self.ended.done():
            self._events.put_nowait(event)

    def ends(self, code: grpc.StatusCode, details: str) -> None:
        """The server has ended it."""
        _set(self.ended, code, details, None)

    def breaks(self) -> None:
        """A message of it was lost."""
        self.ends(grpc.StatusCode.UNAVAILABLE, "the stream broke")

    def cancel(self) -> None:
        """The client wants no more of it."""
        _set(self.ended, grpc.StatusCode.OK, "", None)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Any:
        if (event := await self._events.get()) is None:
            self.ended.result()
            raise StopAsyncIteration
        return event


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


def _set(
    answer: asyncio.Future[Any], code: grpc.StatusCode, details: str, message: Message | None
) -> None:
    if answer.done():
        return
    if code == grpc.StatusCode.OK:
        answer.set_result(message)
    else:
        answer.set_exception(CallError(code, details))
        answer.exception()  # seen


def _short(message: Message) -> str:
    """A message as one line of the log, but for what is long."""
    shown = type(message)()
    shown.CopyFrom(message)
    for name in ("progress", "member_key"):
        if name in message.DESCRIPTOR.fields_by_name:
            shown.ClearField(name)
    return " ".join(str(shown).split())
