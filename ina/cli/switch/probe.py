"""What a client must know before it opens a P4Runtime shell: who is primary, is there a program."""

from __future__ import annotations

from dataclasses import dataclass

import grpc
from finsy.proto import U128, p4r, p4r_grpc, rpc_code

from ina.errors import InaError, UnavailableError
from ina.rpc.absence import why_absent
from ina.rpc.channel import let_go, open_channel

TIMEOUT_S = 10.0


class SwitchRefusedError(InaError):
    """The switch answered with an error, for example that it has another device id."""


@dataclass(frozen=True)
class SwitchAnswer:
    """``primary_id``: election id of the primary client, None: there is none."""

    primary_id: int | None
    highest_id: int  # that the switch tells of
    has_program: bool


def probe(address: str, device_id: int) -> SwitchAnswer:
    """Asks the P4Runtime server at ``host:port``, as a backup; changes nothing.

    Raises UnavailableError (nobody answers within 10 s), SwitchRefusedError.
    """
    update = p4r.MasterArbitrationUpdate(device_id=device_id)  # no election id: never primary
    hello = p4r.StreamMessageRequest(arbitration=update)
    try:
        with open_channel(address) as channel:
            stub = p4r_grpc.P4RuntimeStub(channel)
            # Ends with the channel.
            answer = next(iter(stub.StreamChannel(iter([hello]), timeout=TIMEOUT_S))).arbitration
            has_program = _has_program(stub, device_id)
    except grpc.RpcError as error:
        let_go(error)
        raise _explain(error, address) from None
    except StopIteration:
        raise SwitchRefusedError(f"{address}: the switch closed the stream") from None
    # A server that takes "no election id" for 0 calls this very client primary when it is alone.
    highest = U128.decode(answer.election_id)
    there_is_one = answer.status.code == rpc_code.ALREADY_EXISTS
    return SwitchAnswer(highest if there_is_one else None, highest, has_program)


def _has_program(stub: p4r_grpc.P4RuntimeStub, device_id: int) -> bool:
    kind = p4r.GetForwardingPipelineConfigRequest
    request = kind(device_id=device_id, response_type=kind.P4INFO_AND_COOKIE)
    try:
        reply = stub.GetForwardingPipelineConfig(request, timeout=TIMEOUT_S)
    except grpc.RpcError as error:
        if error.code() == grpc.StatusCode.FAILED_PRECONDITION:
            return False
        raise
    return reply.HasField("config")


def _explain(error: grpc.RpcError, address: str) -> InaError:
    if error.code() in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        why = why_absent(address, error.details())
        return UnavailableError(f"no switch answers at {address}: {why}")
    return SwitchRefusedError(f"{address}: {error.details()}")
