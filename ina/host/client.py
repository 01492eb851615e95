"""The controller's gRPC service as seen by a worker. Every call has a deadline."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import grpc

from ina.host.errors import ControllerError, ControllerTimeoutError
from ina.rpc import controller_pb2, controller_pb2_grpc

Reply = TypeVar("Reply")

# On top of Join's own timeout, so that the controller can say who is missing before gRPC gives up.
_JOIN_GRACE_S = 5.0


class ControllerClient:
    """A connection to one controller. Close it, or use it as a context manager."""

    def __init__(self, address: str, *, timeout_s: float = 10.0) -> None:
        """Connect lazily to `address` ("host:port"); `timeout_s` bounds each call but Join."""
        self.address = address
        self._timeout_s = timeout_s
        self._channel = grpc.insecure_channel(address)
        self._stub = controller_pb2_grpc.ControllerStub(self._channel)

    def __enter__(self) -> ControllerClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Idempotent."""
        self._channel.close()

    def create_job(self, name: str, world_size: int, slots: int) -> controller_pb2.CreateJobReply:
        """Create the job unless it exists; returns where the switch is and the granted slots."""
        request = controller_pb2.CreateJobRequest(name=name, world_size=world_size, slots=slots)
        what = f"create job {name!r}"
        # The controller may be about to start: wait for it, up to the deadline.
        return self._call(what, self._stub.CreateJob, request, self._timeout_s, wait=True)

    def join(
        self, name: str, rank: int, host: str, udp_port: int, timeout_s: float
    ) -> controller_pb2.JoinReply:
        """Join and wait up to `timeout_s` for all other workers and the switch's tables."""
        request = controller_pb2.JoinRequest(
            name=name, rank=rank, host=host, udp_port=udp_port, timeout_s=timeout_s
        )
        what = f"join job {name!r} as rank {rank}"
        return self._call(what, self._stub.Join, request, timeout_s + _JOIN_GRACE_S)

    def leave(self, name: str, rank: int, epoch: int) -> None:
        """Leave the job; the last one to leave frees its slots."""
        request = controller_pb2.LeaveRequest(name=name, rank=rank, epoch=epoch)
        what = f"leave job {name!r} as rank {rank}"
        self._call(what, self._stub.Leave, request, self._timeout_s)

    def _call(
        self,
        what: str,
        method: Callable[..., Reply],
        request: object,
        timeout_s: float,
        *,
        wait: bool = False,
    ) -> Reply:
        try:
            return method(request, timeout=timeout_s, wait_for_ready=wait)
        except grpc.RpcError as error:
            detail = " ".join(str(error.details()).split())
            message = f"controller {self.address}: cannot {what}: {detail}"
            if error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
                raise ControllerTimeoutError(f"{message} (after {timeout_s:g} s)") from None
            raise ControllerError(f"{message} ({error.code().name})") from None
