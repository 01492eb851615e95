"""The operator's token: where it is read from, who must show it, and to whom it is shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from ina.rpc import controller_pb2 as pb2
from ina.rpc import controller_pb2_grpc as rpc
from ina.rpc.channel import open_channel
from ina.rpc.operator_token import METADATA_KEY, OperatorTokenError, TokenAsker, read_token

TOKEN = "correct horse battery"
DEADLINE_S = 30.0


class Service(rpc.ControllerServicer, rpc.OperatorServicer):
    """Answers, and remembers the tokens it was shown."""

    def __init__(self) -> None:
        self.shown: dict[str, list[object]] = {}

    def note(self, method: str, context: Any) -> None:
        metadata = context.invocation_metadata() or ()
        self.shown[method] = [value for key, value in metadata if key == METADATA_KEY]

    async def ListJobs(self, request: pb2.ListJobsRequest, context: Any) -> pb2.ListJobsReply:  # noqa: N802
        self.note("ListJobs", context)
        return pb2.ListJobsReply()

    async def WatchJobs(  # noqa: N802
        self, request: pb2.WatchJobsRequest, context: Any
    ) -> AsyncIterator[pb2.JobEvent]:
        self.note("WatchJobs", context)
        yield pb2.JobEvent(name="j")

    async def Leave(self, request: pb2.LeaveRequest, context: Any) -> pb2.LeaveReply:  # noqa: N802
        self.note("Leave", context)
        return pb2.LeaveReply()


def calls(address: str) -> dict[str, grpc.StatusCode]:
    """The status of one call each."""
    found = {}
    with open_channel(address) as channel:
        operator, worker = rpc.OperatorStub(channel), rpc.ControllerStub(channel)
        attempts: dict[str, Callable[[], object]] = {
            "ListJobs": lambda: operator.ListJobs(pb2.ListJobsRequest(), timeout=DEADLINE_S),
            "WatchJobs": lambda: list(
                operator.WatchJobs(pb2.WatchJobsRequest(), timeout=DEADLINE_S)
            ),
            "Leave": lambda: worker.Leave(pb2.LeaveRequest(), timeout=DEADLINE_S),
        }
        for name, call in attempts.items():
            try:
                call()
                found[name] = grpc.StatusCode.OK
            except grpc.RpcError as error:
                found[name] = error.code()
    return found


def serve_and_call() -> tuple[dict[str, grpc.StatusCode], dict[str, list[object]]]:
    async def main() -> tuple[dict[str, grpc.StatusCode], dict[str, list[object]]]:
        service = Service()
        server = grpc.aio.server(interceptors=[TokenAsker(TOKEN)])
        rpc.add_ControllerServicer_to_server(service, server)
        rpc.add_OperatorServicer_to_server(service, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            return await asyncio.to_thread(calls, f"127.0.0.1:{port}"), service.shown
        finally:
            await server.stop(0)

    return asyncio.run(main())


def test_who_shows_the_token_is_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INA_OPERATOR_TOKEN", TOKEN)
    status, shown = serve_and_call()
    assert set(status.values()) == {grpc.StatusCode.OK}
    # Workers' calls do not carry it: a worker's environment may have it by accident.
    assert shown == {"ListJobs": [TOKEN], "WatchJobs": [TOKEN], "Leave": []}


@pytest.mark.parametrize("token", ["", "a wrong token, long enough", TOKEN + "x"])
def test_who_does_not_is_refused_and_works_on(monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setenv("INA_OPERATOR_TOKEN", token)
    status, shown = serve_and_call()
    assert status == {
        "ListJobs": grpc.StatusCode.UNAUTHENTICATED,
        "WatchJobs": grpc.StatusCode.UNAUTHENTICATED,
        "Leave": grpc.StatusCode.OK,
    }
    assert set(shown) == {"Leave"}


def test_the_token_is_the_first_line(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"  {TOKEN} \nsecond line\n")
    assert read_token(path) == TOKEN


@pytest.mark.parametrize("data", [b"", b"\n" + TOKEN.encode(), b"short", b"\xff" * 32])
def test_what_is_no_token_is_refused_with_its_file(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "token"
    path.write_bytes(data)
    with pytest.raises(OperatorTokenError, match=f"^operator token {path}: "):
        read_token(path)
    path.unlink()
    with pytest.raises(OperatorTokenError, match="No such file"):
        read_token(path)
