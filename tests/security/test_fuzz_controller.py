"""Random and mutated messages at the controller: typed answers, and a job that sums on meanwhile.

``INA_FUZZ_SEEDS="7 8" INA_FUZZ_CALLS=20000`` runs longer, or a failure again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
from google.protobuf.message import Message

from ina.controller.embedded import Embedded
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import OperatorStub
from tests.security.jobs import SummingJob, summing_job
from tests.security.messages import CALLS, SEEDS, Maker

TOKEN = "the fuzzing operator's token"
WAIT_S = 0.05  # for calls that may wait as long as they are told to: Join
STREAM_S = 0.03  # for those that never end, as each good Watch, of which there are dozens
DEADLINE_S = 30.0  # for those that must be refused at once
ALLOWED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.ABORTED,
}


class Method(NamedTuple):
    path: str
    request: type[Message]
    streams: bool


def methods(service: str) -> list[Method]:
    descriptor = pb2.DESCRIPTOR.services_by_name[service]
    return [
        Method(
            f"/{descriptor.full_name}/{method.name}",
            getattr(pb2, method.input_type.name),
            method.server_streaming,
        )
        for method in descriptor.methods
    ]


class Target:
    """A controller and a job on it that must not notice."""

    def __init__(self, embedded: Embedded, job: SummingJob, operator: OperatorStub) -> None:
        self.embedded = embedded
        self.operator = operator
        ticket = job.sessions[0].ticket
        self.name = ticket.job_name
        self.good: list[Message] = [
            pb2.CreateJobRequest(name=self.name, world_size=2, slots=64, wire_version=VERSION),
            pb2.JoinRequest(name=self.name, rank=1, host="127.0.0.1", udp_port=4000, timeout_s=0.1),
            pb2.HeartbeatRequest(
                name=self.name,
                epoch=ticket.epoch,
                member_key=bytes(32),
                progress=pb2.Progress(in_flight=1, lane_seqs=[1, 2], lanes_waiting=b"\x01"),
            ),
            pb2.WatchRequest(name=self.name, rank=1, epoch=ticket.epoch, member_key=bytes(32)),
            pb2.LeaveRequest(name=self.name, rank=1, epoch=ticket.epoch, member_key=bytes(32)),
        ]
        self.before = self.state()

    def state(self) -> tuple[object, ...]:
        """All that is known of the job, but its progress."""
        shown = self.embedded.show()
        (job,) = [job for job in self.jobs() if job.name == self.name]
        entries = sorted(str(e) for e in shown.entries if e.job in ("", self.name))
        return (
            job.job,
            job.epoch,
            job.first_slot,
            job.slots,
            job.state,
            tuple(job.joined),
            entries,
        )

    def jobs(self) -> list[pb2.Job]:
        return list(self.operator.ListJobs(pb2.ListJobsRequest(), timeout=30).jobs)

    def clear(self) -> None:
        """Evicts what the fuzzing has created, as an operator would."""
        for job in self.jobs():
            if job.name != self.name:
                self.operator.EvictJob(pb2.EvictJobRequest(name=job.name), timeout=30)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    token_file = tmp_path_factory.mktemp("fuzz") / "token"
    token_file.write_text(TOKEN)
    with ExitStack() as stack:
        stack.enter_context(pytest.MonkeyPatch.context()).setenv("INA_OPERATOR_TOKEN", TOKEN)
        embedded = stack.enter_context(embedded_with_token(token_file))
        job = stack.enter_context(summing_job(embedded, "victim", 2))
        channel = stack.enter_context(open_channel(embedded.controller_addr))
        yield Target(embedded, job, OperatorStub(channel))
        assert job.finish() > 0  # every sum was right


def embedded_with_token(token_file: Path) -> Embedded:
    # The fuzzing is in this process too, and may keep the job's heartbeats waiting for a while.
    config: dict[str, dict[str, Any]] = {
        "operators": {"token_file": str(token_file)},
        "jobs": {"lease_s": 600},
    }
    return Embedded(values=64, slots=64, config=config)


def send(
    channel: grpc.Channel, method: Method, data: bytes, timeout_s: float, **options: Any
) -> tuple[Any, str]:
    """Status code and details of one call with these bytes."""
    kind: Any = channel.unary_stream if method.streams else channel.unary_unary
    call = kind(method.path)
    try:
        reply = call(data, timeout=timeout_s, **options)
        if method.streams:
            list(reply)
    except grpc.RpcError as error:
        return error.code(), error.details() or ""
    return grpc.StatusCode.OK, ""


def check(code: grpc.StatusCode, details: str, context: str) -> None:
    assert code in ALLOWED, f"{code} {details!r} for {context}"
    assert details.isprintable(), context
    assert "Traceback" not in details, context


def requests(maker: Maker, good: list[Message], method: Method) -> tuple[bytes, str]:
    """One request, and how it can be told."""
    mine = [message for message in good if isinstance(message, method.request)]
    example = maker.random.choice(mine) if mine else method.request()
    match maker.random.choice(["message", "mutation", "mutation", "noise"]):
        case "message":
            made = maker.message(method.request)
        case "mutation":
            made = maker.mutation(example)
        case _:
            data = maker.noise(example)
            return data, f"{method.path} {data!r}"
    return made.SerializeToString(), f"{method.path} {made!r}"


@pytest.mark.parametrize("seed", SEEDS)
def test_worker_s_service(target: Target, seed: int) -> None:
    maker = Maker(seed, [target.name, target.name, "127.0.0.1", "another"])
    seen: Counter[grpc.StatusCode] = Counter()
    # Its own channel: refused connections must not be the operator's.
    with grpc.insecure_channel(target.embedded.controller_addr) as channel:
        for number in range(CALLS):
            method = maker.random.choice(methods("Controller"))
            data, told = requests(maker, target.good, method)
            wait_s = STREAM_S if method.streams else WAIT_S
            code, details = send(channel, method, data, wait_s)
            check(code, details, f"seed {seed} call {number}: {told}")
            seen[code] += 1
            if number % 50 == 0:
                target.clear()
    target.clear()
    assert target.state() == target.before
    assert len(seen) > 3, seen  # the requests got past the first check


@pytest.mark.parametrize("seed", SEEDS)
def test_operator_s_service(target: Target, seed: int) -> None:
    """With the token, but for names of jobs that are not there; without it, nothing at all."""
    maker = Maker(seed)
    with grpc.insecure_channel(target.embedded.controller_addr) as channel:
        for number in range(CALLS // 4):
            method = maker.random.choice(methods("Operator"))
            data, told = requests(maker, [], method)
            told = f"seed {seed} call {number}: {told}"
            code, details = send(channel, method, data, DEADLINE_S)
            assert code is grpc.StatusCode.UNAUTHENTICATED, told
            token = [("ina-operator-token", TOKEN)]
            wait_s = STREAM_S if method.streams else WAIT_S
            code, details = send(channel, method, data, wait_s, metadata=token)
            check(code, details, told)
    assert target.state() == target.before


def test_methods_and_services_that_are_not_there(target: Target) -> None:
    with grpc.insecure_channel(target.embedded.controller_addr) as channel:
        for path in ("/ina.v1.Controller/Nothing", "/ina.v1.Nobody/Join", "/", "//"):
            code, _ = send(channel, Method(path, pb2.LeaveRequest, False), b"", DEADLINE_S)
            assert code is grpc.StatusCode.UNIMPLEMENTED
    assert target.state() == target.before
