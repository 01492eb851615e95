"""Requests that a P4Runtime client, a worker and an operator would make."""

from __future__ import annotations

from typing import Any

from finsy.proto import U128, p4i, p4r
from google.protobuf.message import Message

from fuzz.doors import controller, p4runtime
from fuzz.records import Record, write_records
from fuzz.seeds.packets import Examples
from ina.protocol.spec import VERSION
from ina.rpc import controller_pb2 as pb2
from tests.security.test_fuzz_p4runtime import EVERYTHING, ROWS, good_updates
from tests.worlds.fakes.p4runtime import update


def p4runtime_inputs() -> Examples:
    """Each method's, and streams."""
    who = {"device_id": p4runtime.DEVICE, "election_id": U128.encode(p4runtime.ELECTION)}
    config = p4r.ForwardingPipelineConfig(p4info=p4i.P4Info(), p4_device_config=b"known")
    config.cookie.cookie = 7
    config.p4info.SetInParent()
    hello = p4r.StreamMessageRequest(
        arbitration=p4r.MasterArbitrationUpdate(
            device_id=p4runtime.DEVICE, election_id=U128.encode(p4runtime.ELECTION + 1)
        )
    )
    packet = p4r.StreamMessageRequest(packet=p4r.PacketOut(payload=b"frame"))
    packet.packet.metadata.add(metadata_id=1, value=b"\x01")

    def call(method: str, message: Message) -> Record:
        assert type(message) is p4runtime.REQUESTS[method]
        return p4runtime.METHODS.index(method), message.SerializeToString()

    def write(*updates: p4r.Update, **more: object) -> Record:
        return call("Write", p4r.WriteRequest(updates=updates, **who | more))  # type: ignore[arg-type]

    def set_config(action: int) -> Record:
        request = p4r.SetForwardingPipelineConfigRequest(action=action, config=config, **who)  # type: ignore[arg-type]
        return call("SetForwardingPipelineConfig", request)

    read = call("Read", p4r.ReadRequest(device_id=p4runtime.DEVICE, entities=EVERYTHING))
    get = call(
        "GetForwardingPipelineConfig",
        p4r.GetForwardingPipelineConfigRequest(device_id=p4runtime.DEVICE),
    )
    rows = [update("INSERT", table_entry=row) for row in ROWS]
    commit = p4r.SetForwardingPipelineConfigRequest(action=4, **who)  # type: ignore[arg-type]
    sequences: dict[str, list[Record]] = {
        "write": [write(*good_updates()), read],
        "write-again": [write(*good_updates()), write(*good_updates()), read],
        "modify": [write(*rows), write(*(update("MODIFY", table_entry=row) for row in ROWS))],
        "delete": [write(*rows), write(*(update("DELETE", table_entry=row) for row in ROWS)), read],
        "other-device": [write(*rows, device_id=2)],
        "not-primary": [write(*rows, election_id=U128.encode(1))],
        "atomic": [write(*rows, atomicity=p4r.WriteRequest.ROLLBACK_ON_ERROR)],
        "read": [read],
        "get": [get],
        "capabilities": [call("Capabilities", p4r.CapabilitiesRequest())],
        "stream": [call("StreamChannel", hello), call("StreamChannel", packet)],
        "stream-stranger": [call("StreamChannel", packet)],
        "save-commit": [set_config(2), write(*rows), call("SetForwardingPipelineConfig", commit)],
    }
    sequences |= {f"row-{number}": [write(row), read] for number, row in enumerate(good_updates())}
    sequences |= {f"config-{action}": [set_config(action), get] for action in range(6)}
    return {name: write_records(records) for name, records in sequences.items()}


def controller_inputs() -> Examples:
    """Each method's, and a job's life."""
    key = controller.MY_KEY
    progress = pb2.Progress(in_flight=1, lane_seqs=[8, 1], lanes_waiting=b"\x01")
    create = pb2.CreateJobRequest(name="j", world_size=2, slots=4, wire_version=VERSION)
    beat = pb2.HeartbeatRequest(name="j", rank=1, epoch=1, member_key=key, progress=progress)
    leave = [
        pb2.LeaveRequest(name="j", rank=rank, epoch=1, member_key=key, progress=progress)
        for rank in range(2)
    ]
    join = [
        pb2.JoinRequest(name="j", rank=rank, host=f"10.0.0.{rank + 1}", udp_port=4000, timeout_s=20)
        for rank in range(2)
    ]
    watch = pb2.WatchRequest(name="j", rank=1, epoch=1, member_key=key)
    running: list[Message] = [create, *join]
    resize = pb2.ResizeJobRequest(name="j", slots=16)
    in_place = pb2.ResizeJobRequest(name="j", slots=62)

    def remap(rank: int, **said: Any) -> pb2.RemapRequest:
        return pb2.RemapRequest(name="j", rank=rank, epoch=1, member_key=key, **said)

    asks = [remap(1), remap(0)]
    decided = remap(0, to_epoch=2, first_operation=9)
    declined = remap(0, to_epoch=2, declined=True, reason="why\nnot")
    wrong = remap(0, to_epoch=2, first_operation=1 << 63)
    done = [remap(rank, to_epoch=2, done=True) for rank in range(2)]
    sequences: dict[str, list[Message]] = {
        "create": [create],
        "life": [*running, watch, beat, *leave],
        "shown": [*running, pb2.ShowJobRequest(name="j"), pb2.ListJobsRequest()],
        "evicted": [*running, watch, pb2.EvictJobRequest(name="j", reason="why\nnot")],
        "half": [create, join[0], leave[0]],
        "twice": [create, join[0], join[0]],
        "other-size": [create, pb2.CreateJobRequest(name="j", world_size=3, wire_version=VERSION)],
        "token": [
            pb2.CreateJobRequest(name="j", world_size=1, wire_version=VERSION, token="s"),
            pb2.JoinRequest(
                name="j", rank=0, host="10.0.0.1", udp_port=1, timeout_s=5, token="wrong"
            ),
        ],
        "tenants": [
            pb2.CreateJobRequest(
                name=f"j{number}", world_size=1, wire_version=VERSION, tenant="t", priority=number
            )
            for number in range(8)
        ],
        "wire-version": [pb2.CreateJobRequest(name="j", world_size=2, wire_version=1)],
        "wrong-key": [*running, pb2.LeaveRequest(name="j", rank=0, epoch=1, member_key=b"k" * 32)],
        "no-key": [*running, pb2.HeartbeatRequest(name="j", rank=0, epoch=1)],
        "other-epoch": [*running, pb2.WatchRequest(name="j", rank=0, epoch=2, member_key=key)],
        "two-watch": [*running, watch, watch, pb2.WatchJobsRequest(), pb2.WatchJobsRequest()],
        "shared-results": [
            create,
            *(
                pb2.JoinRequest(
                    name="j",
                    rank=rank,
                    host="10.0.0.1",
                    udp_port=4000 + rank,
                    timeout_s=3600,
                    takes_shared_results=True,
                    switch_port=rank,
                )
                for rank in range(2)
            ),
        ],
        "resized": [*running, resize, *asks, decided, *done, *leave],
        "resized-in-place": [*running, in_place, *asks, decided, *done, *asks],
        "resize-declined": [*running, resize, *asks, declined, resize],
        "resize-left": [*running, resize, leave[1], *asks, decided],
        "resize-wrong": [*running, resize, done[1], wrong, *asks, decided, wrong, resize],
        "switch": [pb2.ShowSwitchRequest(switch="switch"), pb2.RemoveForeignRequest()],
        "nobody": [pb2.ShowJobRequest(name="x"), pb2.EvictJobRequest(name="x")],
    }
    sequences |= {
        f"empty-{request.DESCRIPTOR.name}": [request()] for request in controller.REQUESTS
    }
    return {
        name: write_records(
            [(controller.REQUESTS.index(type(one)), one.SerializeToString()) for one in messages]
        )
        for name, messages in sequences.items()
    }
