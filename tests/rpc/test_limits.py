"""One peer's calls are counted, and those above the limit refused at once; others' go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import grpc.aio
import pytest

from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc
from ina.rpc.limits import MAX_REQUEST_BYTES, SERVER_OPTIONS, PeerLimit, address_of

LIMIT = 3
DEADLINE_S = 30.0


class Waiting(rpc.ControllerServicer):
    """Its calls wait until they are let go."""

    def __init__(self) -> None:
        self.waiting = 0
        self.go = asyncio.Event()

    async def Join(self, request: pb2.JoinRequest, context: Any) -> pb2.JoinReply:  # noqa: N802
        self.waiting += 1
        await self.go.wait()
        return pb2.JoinReply()

    async def Watch(  # noqa: N802
        self, request: pb2.WatchRequest, context: Any
    ) -> AsyncIterator[pb2.JobEvent]:
        self.waiting += 1
        yield pb2.JobEvent(name=request.name)
        await self.go.wait()


def with_server(test: Callable[[Waiting, int], Awaitable[None]]) -> None:
    async def main() -> None:
        service = Waiting()
        server = grpc.aio.server(interceptors=[PeerLimit(LIMIT)], options=SERVER_OPTIONS)
        rpc.add_ControllerServicer_to_server(service, server)
        port = server.add_insecure_port("0.0.0.0:0")
        await server.start()
        try:
            await asyncio.wait_for(test(service, port), DEADLINE_S)
        finally:
            await server.stop(0)

    asyncio.run(main())


def stub_of(channel: grpc.aio.Channel) -> Any:
    """Generated stubs serve both kinds of channel; their types know one."""
    return rpc.ControllerStub(channel)  # type: ignore[arg-type]


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)


async def code(call: Any) -> grpc.StatusCode:
    try:
        await (call.read() if isinstance(call, grpc.aio.UnaryStreamCall) else call)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("method", ["Join", "Watch"])
def test_calls_above_the_limit_are_refused_until_others_end(method: str) -> None:
    async def test(service: Waiting, port: int) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = stub_of(channel)
            request = {"Join": pb2.JoinRequest(), "Watch": pb2.WatchRequest()}[method]
            ask = getattr(stub, method)
            held = [ask(request) for _ in range(LIMIT)]
            await until(lambda: service.waiting == LIMIT)
            for _ in range(5):
                assert await code(ask(request)) is grpc.StatusCode.RESOURCE_EXHAUSTED
            # A connection more does not help: peers are addresses.
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as second:
                call = stub_of(second).Join(pb2.JoinRequest())
                assert await code(call) is grpc.StatusCode.RESOURCE_EXHAUSTED
            held[0].cancel()  # a client that goes gives its place back
            while service.waiting == LIMIT:
                await asyncio.wait([asyncio.ensure_future(code(ask(request)))], timeout=0.1)
            service.go.set()

    with_server(test)


def test_another_address_is_not_held_up() -> None:
    async def test(service: Waiting, port: int) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = stub_of(channel)
            held = [stub.Join(pb2.JoinRequest()) for _ in range(LIMIT)]
            await until(lambda: service.waiting == LIMIT)
            # An address of another family stands for another machine.
            async with grpc.aio.insecure_channel(f"[::1]:{port}") as other:
                last = stub_of(other).Join(pb2.JoinRequest())
                await until(lambda: service.waiting == LIMIT + 1)
                service.go.set()
                for call in [*held, last]:
                    assert await code(call) is grpc.StatusCode.OK

    with_server(test)


def test_a_request_larger_than_any_is_refused_unread() -> None:
    async def test(service: Waiting, port: int) -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = stub_of(channel).Join(pb2.JoinRequest(name="x" * MAX_REQUEST_BYTES))
            assert await code(call) is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert service.waiting == 0

    with_server(test)


def test_a_peer_is_its_address() -> None:
    assert address_of("ipv4:10.0.0.1:4433") == "10.0.0.1"
    assert address_of("ipv6:%5B::1%5D:4433") == address_of("ipv6:[::1]:4433") == "::1"
    assert address_of("unix:/tmp/s") == "unix:/tmp/s"
