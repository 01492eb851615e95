"""Calls by the thousand from one address: another address's job starts and sums meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import grpc
import grpc.aio
import pytest

from ina.controller.embedded import Embedded
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc
from ina.rpc.limits import MAX_CALLS_A_PEER
from tests.security.jobs import summing_job

# One for each test: a controller may still be ending the calls of the one before.
ATTACKERS = (f"127.0.0.{number}" for number in range(2, 255))
FLOOD = MAX_CALLS_A_PEER + 200
DEADLINE_S = 90.0


@pytest.fixture(scope="module")
def embedded() -> Iterator[Embedded]:
    with Embedded(values=64, slots=64) as running:
        yield running


@contextlib.asynccontextmanager
async def from_attacker(controller: str) -> Any:
    """A channel whose connection comes from an attacker, which gRPC itself has no option for."""
    host, _, port = controller.rpartition(":")
    attacker = next(ATTACKERS)

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection(host, int(port), local_addr=(attacker, 0))
        try:
            await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))
        finally:
            there[1].close()
            writer.close()

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server, grpc.aio.insecure_channel(address) as channel:
        yield channel


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


def attacking(
    embedded: Embedded, attack: Callable[[Any, threading.Event], Awaitable[None]]
) -> None:
    """Runs ``attack(channel, stop)``; when it says so, a job joins and sums; then stop is set."""
    ready, stop = threading.Event(), threading.Event()
    errors: list[BaseException] = []

    async def main() -> None:
        async with from_attacker(embedded.controller_addr) as channel:
            await asyncio.wait_for(attack(channel, ready), DEADLINE_S)
            ready.set()
            await asyncio.to_thread(stop.wait, DEADLINE_S)

    def run() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            errors.append(error)
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        assert ready.wait(DEADLINE_S)
        assert not errors, errors
        with summing_job(embedded, "victim", 2) as victim:
            assert victim.finish() > 0
    finally:
        stop.set()
        thread.join(DEADLINE_S)
    assert not errors, errors


async def outcome(call: Any) -> grpc.StatusCode:
    try:
        await (call.read() if isinstance(call, grpc.aio.UnaryStreamCall) else call)
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


def test_watch_streams_are_limited_by_address(embedded: Embedded) -> None:
    async def attack(channel: Any, ready: threading.Event) -> None:
        operator: Any = rpc.OperatorStub(channel)
        ends = []
        for number in range(FLOOD):
            stream = operator.WatchJobs(pb2.WatchJobsRequest())
            ends.append(asyncio.ensure_future(outcome(stream)))
            if number % 50 == 0:  # or gRPC itself refuses some
                await stream.initial_metadata()
        open_still = set(ends)
        while len(open_still) > MAX_CALLS_A_PEER:
            done, open_still = await asyncio.wait(open_still, return_when=asyncio.FIRST_COMPLETED)
            assert {task.result() for task in done} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        assert len(open_still) == MAX_CALLS_A_PEER

    attacking(embedded, attack)


def test_a_flood_of_joins(embedded: Embedded) -> None:
    """Joins that wait, joins of jobs that are not there, and of ranks that are taken."""

    async def attack(channel: Any, ready: threading.Event) -> None:
        worker: Any = rpc.ControllerStub(channel)
        await worker.CreateJob(
            pb2.CreateJobRequest(name="trap", world_size=32, slots=64, wire_version=VERSION)
        )
        requests = [
            pb2.JoinRequest(
                name=name, rank=number % 31, host="127.0.0.2", udp_port=4000 + number % 31,
                timeout_s=60,
            )
            for number in range(FLOOD)
            for name in ("trap", "nobody")
        ]  # fmt: skip
        ends = [asyncio.ensure_future(outcome(worker.Join(request))) for request in requests]
        waiting = set(ends)
        while len(waiting) > 31:  # one for each rank but the last, which nobody is
            _, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        codes = Counter(task.result() for task in ends if task.done())
        assert set(codes) <= {
            grpc.StatusCode.NOT_FOUND,
            grpc.StatusCode.ALREADY_EXISTS,
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            grpc.StatusCode.CANCELLED,  # by gRPC itself, which bears so many new calls at once
        }, codes
        assert len(waiting) == 31

    attacking(embedded, attack)
