"""The connectivity self-test: host to controller, host to switch, and back, through a real job."""

from __future__ import annotations

import contextlib
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import grpc

from ina.doctor.evidence import Evidence, read_evidence
from ina.doctor.job_verdict import switch_advice, switch_trouble
from ina.doctor.machine import WANTED_RECEIVE_BUFFER_BYTES
from ina.doctor.probe import Echo, Prober
from ina.doctor.verdict import BothEnds, Step, judge_full, judge_small
from ina.host.calls import switch_of
from ina.host.errors import TransportError
from ina.host.udp import open_socket
from ina.p4.names import DEFAULT_MODE
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from ina.rpc.absence import why_absent
from ina.rpc.channel import open_channel
from ina.rpc.controller_pb2_grpc import ControllerStub, OperatorStub

PROBES = 10
PAUSE_S = 0.2
"""Longest wait for one answer. A lost probe costs this much: both sizes together 4 s at most."""
_CALL_TIMEOUT_S = 10.0
_JOB_SLOTS = 2
_RUNS_NONE = "rank 0 runs none"
"""What a controller says whose jobs are of mode shared, and bring their aggregators."""
_ABSENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
"""What only a controller that is not there answers to ShowController: any role does that."""


def examine_path(
    controller: str,
    *,
    host: str | None = None,
    token: str = "",
    tenant: str = "",
    timeout_s: float = _CALL_TIMEOUT_S,
) -> Iterator[Step]:
    """Yields each step as it is done, and stops at the first that makes the next pointless.

    Args:
        controller: ``host:port``.
        host: this host's IPv4 address towards the switch; default: what the routing table gives.
        token: join token of the test's job.
        tenant: whose quota the test's job counts against.
        timeout_s: deadline of each call.
    """
    job = f"doctor-{secrets.token_hex(4)}"
    with open_channel(controller) as channel, contextlib.ExitStack() as undo:
        worker, operator = ControllerStub(channel), OperatorStub(channel)
        about = pb2.ShowControllerReply()
        try:
            about = operator.ShowController(pb2.ShowControllerRequest(), timeout=timeout_s)
        except grpc.RpcError as error:
            if error.code() in _ABSENT:
                yield _absent(controller, error)
                return  # who refuses to say it (no operator token) has answered, too
        trouble = switch_trouble(about.switch_state)
        if about.role == "primary" and trouble:
            yield Step("controller", True, f"{controller} answers")
            found = f"the controller does not reach its switch: {trouble}"
            yield Step("switch", False, found, switch_advice(about.switch_addr))
            return
        asked = _Asked(worker, undo, host, token, tenant, timeout_s)
        try:
            try:
                created, sock, joined = asked.join(job, "")
            except grpc.RpcError as error:
                if _RUNS_NONE not in _details(error):
                    raise
                job += "-pool"  # the first one forgets itself, as nobody joins it
                created, sock, joined = asked.join(job, DEFAULT_MODE)
        except (grpc.RpcError, TransportError) as error:
            yield _refused(controller, error)
            return
        way = BothEnds(sock.getsockname()[0], str(switch_of(created)))
        undo.callback(_leave, worker, job, joined, timeout_s)
        yield Step(
            "controller", True, f"{controller} admits {way.host}; the switch is {way.switch}"
        )
        prober = Prober(sock, joined.trees[0].job, joined.epoch, joined.slots)
        pause_s = min(PAUSE_S, joined.lease_s / (2 * PROBES))
        evidence = _Reader(operator, job, timeout_s)
        small, seen = evidence.around(lambda: prober.echo(0, PROBES, pause_s))
        yield judge_small(small, seen, way)
        _stay(worker, job, joined, timeout_s)
        values = created.values_per_packet
        full, seen = evidence.around(lambda: prober.echo(values, PROBES, pause_s))
        yield judge_full(full, small, seen, way)
        yield _buffer(sock)


@dataclass(frozen=True)
class _Asked:
    """How the test's job is asked for."""

    worker: ControllerStub
    undo: contextlib.ExitStack
    host: str | None
    token: str
    tenant: str
    timeout_s: float

    def join(self, job: str, mode: str) -> tuple[pb2.CreateJobReply, socket.socket, pb2.JoinReply]:
        """As its only rank, with a socket towards the switch; ``mode``: empty: as is usual there.

        Raises grpc.RpcError, TransportError.
        """
        create = pb2.CreateJobRequest(
            name=job,
            world_size=1,
            slots=_JOB_SLOTS,
            token=self.token,
            tenant=self.tenant,
            mode=mode,
            wire_version=VERSION,
        )
        created = self.worker.CreateJob(create, timeout=self.timeout_s)
        sock = open_socket(switch_of(created), self.host)
        self.undo.callback(sock.close)
        own_host, own_port = sock.getsockname()
        join = pb2.JoinRequest(
            name=job,
            rank=0,
            host=own_host,
            udp_port=own_port,
            timeout_s=self.timeout_s,
            token=self.token,
        )
        return created, sock, self.worker.Join(join, timeout=self.timeout_s + 1)


class _Reader:
    """Reads the switch's counters before and after a probe, if this caller may."""

    def __init__(self, operator: OperatorStub, job: str, timeout_s: float) -> None:
        self._operator, self._job, self._timeout_s = operator, job, timeout_s

    def around(self, probe: Callable[[], Echo]) -> tuple[Echo, Evidence | None]:
        before = self._read()
        echo = probe()
        after = self._read()
        return echo, None if before is None or after is None else after - before

    def _read(self) -> Evidence | None:
        with contextlib.suppress(grpc.RpcError):
            reply = self._operator.ShowSwitch(pb2.ShowSwitchRequest(), timeout=self._timeout_s)
            return read_evidence(reply, self._job)
        return None


def _buffer(sock: socket.socket) -> Step:
    """Whether the kernel would hold a whole window of results (it counts about twice a packet)."""
    wanted_bytes = WANTED_RECEIVE_BUFFER_BYTES
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, wanted_bytes)
    # It tells twice what it grants; rmem_max is the latter.
    granted_bytes = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) // 2
    found = f"{granted_bytes} bytes for UDP receive buffers"
    if granted_bytes >= wanted_bytes:
        return Step("receive buffer", True, found)
    advice = f"sysctl -w net.core.rmem_max={wanted_bytes}: larger windows, fewer losses"
    return Step("receive buffer", True, found, advice)


def _refused(controller: str, error: Exception) -> Step:
    if isinstance(error, TransportError):
        return Step(
            "route", False, str(error), "ip route get; --host names the address to send from"
        )
    assert isinstance(error, grpc.RpcError)
    found = f"{controller} answers: {_details(error)}"
    if "standby" in found:
        advice = "name the primary, or all controllers, separated by commas"
    elif error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        advice = "it did not start the test's job in time: does its switch answer? see its log"
    elif error.code() is grpc.StatusCode.UNAVAILABLE:
        advice = "ina controller status: does it reach its switch? see its log"
    else:
        advice = "the controller's own words; see docs/controller.md"
    return Step("controller", False, found, advice)


def _absent(controller: str, error: grpc.RpcError) -> Step:
    """Nobody answers there."""
    found = f"{controller}: {why_absent(controller, error.details())}"
    advice = (
        "is `ina controller run` running there? a firewall for TCP? does it listen on 127.0.0.1"
        " only? with TLS: INA_TLS_CA"
    )
    return Step("controller", False, found, advice)


def _details(error: grpc.RpcError) -> str:
    return " ".join(str(error.details()).split())


def _stay(worker: ControllerStub, job: str, joined: pb2.JoinReply, timeout_s: float) -> None:
    request = pb2.HeartbeatRequest(
        name=job, rank=0, epoch=joined.epoch, member_key=joined.member_key
    )
    with contextlib.suppress(grpc.RpcError):  # what matters shows in the next probe
        worker.Heartbeat(request, timeout=timeout_s)


def _leave(worker: ControllerStub, job: str, joined: pb2.JoinReply, timeout_s: float) -> None:
    request = pb2.LeaveRequest(name=job, rank=0, epoch=joined.epoch, member_key=joined.member_key)
    with contextlib.suppress(grpc.RpcError):  # else its lease ends by itself
        worker.Leave(request, timeout=timeout_s)
