"""Random and mutated messages at the soft switch's P4Runtime server: typed errors, nothing changed.

``INA_FUZZ_SEEDS="7 8" INA_FUZZ_CALLS=20000`` runs longer, or a failure again.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from finsy.proto import U128, p4r, rpc_code
from google.protobuf.message import Message

from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.switch.targets import default_target
from tests.security.messages import CALLS, SEEDS, Maker
from tests.worlds.fakes.p4runtime import (
    DEVICE,
    Client,
    between,
    entry,
    errors_of,
    exact,
    features_config,
    lpm,
    optional,
    ternary,
    update,
)

PRIMARY = 1 << 100
"""Election ids from here on are far from what a random message holds."""
primaries = itertools.count(PRIMARY)
CALL_TIMEOUT_S = 20.0
BUGS = (rpc_code.INTERNAL, rpc_code.UNKNOWN, rpc_code.DATA_LOSS)
EVERYTHING = [
    p4r.Entity(table_entry=p4r.TableEntry()),
    p4r.Entity(packet_replication_engine_entry=p4r.PacketReplicationEngineEntry(
        multicast_group_entry=p4r.MulticastGroupEntry()
    )),
]  # fmt: skip
ROWS = [
    entry("bridge", "forward", (b"\x01",), match=[exact(b"\x05")]),
    entry("routes", "route", (b"\x02", b"\xaa\xbb"), match=[lpm(b"\x0a\x00\x00\x00", 8)]),
    entry("acl", "to_cpu", (b"\x03",), priority=7,
          match=[ternary(b"\x0a\x00\x00\x01", b"\xff\x00\x00\xff"), between(b"\x06", b"\x11"),
                 optional(b"\x01")]),
]  # fmt: skip
METHODS: dict[str, tuple[type[Message], bool]] = {
    "Write": (p4r.WriteRequest, False),
    "Read": (p4r.ReadRequest, True),
    "SetForwardingPipelineConfig": (p4r.SetForwardingPipelineConfigRequest, False),
    "GetForwardingPipelineConfig": (p4r.GetForwardingPipelineConfigRequest, False),
    "Capabilities": (p4r.CapabilitiesRequest, False),
}


@pytest.fixture(scope="module")
def switch(cache_dir: Path) -> Iterator[SoftSwitch]:
    with SoftSwitch([UdpPort(1), UdpPort(2)], target=default_target(cache_dir)) as running:
        yield running


@pytest.fixture
def primary(switch: SoftSwitch) -> Iterator[Client]:
    """With a program, some entries and a multicast group."""
    with Client(switch.grpc_addr) as client:
        client.become_primary(next(primaries))
        client.set_config(features_config(cookie=77))
        client.write_updates(good_updates())
        yield client


def good_updates() -> list[p4r.Update]:
    group = p4r.MulticastGroupEntry(multicast_group_id=3)
    group.replicas.add(egress_port=1, instance=1)
    engine = p4r.PacketReplicationEngineEntry(multicast_group_entry=group)
    rows = [update("INSERT", table_entry=row) for row in ROWS]
    return [*rows, update("INSERT", packet_replication_engine_entry=engine)]


def good_requests(election_id: int) -> dict[str, list[Message]]:
    """Requests that would be granted to whoever has this election id."""
    who: dict[str, Any] = {"device_id": DEVICE, "election_id": U128.encode(election_id)}
    return {
        "Write": [p4r.WriteRequest(updates=good_updates(), **who)],
        "Read": [p4r.ReadRequest(device_id=DEVICE, entities=EVERYTHING)],
        "SetForwardingPipelineConfig": [
            p4r.SetForwardingPipelineConfigRequest(action=action, config=features_config(), **who)  # type: ignore[arg-type]
            for action in (1, 3)
        ],
        "GetForwardingPipelineConfig": [p4r.GetForwardingPipelineConfigRequest(device_id=DEVICE)],
        "Capabilities": [p4r.CapabilitiesRequest()],
    }


def state(client: Client) -> tuple[list[bytes], int]:
    """Every entry, and which configuration is set."""
    entities = sorted(entity.SerializeToString() for entity in client.read_all(EVERYTHING))
    return entities, client.get_config().config.cookie.cookie


def send(channel: grpc.Channel, name: str, data: bytes) -> tuple[int, str, list[int]]:
    """google.rpc code, details and the codes of the single updates of one call."""
    streams = METHODS[name][1]
    kind: Any = channel.unary_stream if streams else channel.unary_unary
    try:
        reply = kind(f"/p4.v1.P4Runtime/{name}")(data, timeout=CALL_TIMEOUT_S)
        if streams:
            list(reply)
    except grpc.RpcError as error:
        details = error.details() or ""
        if error.code() is grpc.StatusCode.UNKNOWN and details and error.trailing_metadata():
            return rpc_code.UNKNOWN, details, [one.canonical_code for one in errors_of(error)]
        return int(error.code().value[0]), details, []
    return rpc_code.OK, "", []


def check(result: tuple[int, str, list[int]], told: str) -> None:
    code, details, each = result
    if each:  # P4Runtime's way to answer for several updates
        assert not set(each) & set(BUGS), f"{details}: {each} for {told}"
    else:
        assert code not in BUGS, f"{code} {details!r} for {told}"
    assert details.isprintable(), told


def draw(maker: Maker, good: dict[str, list[Message]]) -> tuple[str, bytes, str]:
    """A method, the bytes of its request, and how it can be told."""
    name = maker.random.choice(["Write", "Write", "Write", *METHODS])
    example = maker.random.choice(good[name])
    match maker.random.choice(["message", "mutation", "mutation", "mutation", "noise"]):
        case "message":
            made = maker.message(METHODS[name][0])
        case "mutation":
            made = maker.mutation(example)
        case _:
            data = maker.noise(example)
            return name, data, f"{name} {data[:2000]!r}"
    return name, made.SerializeToString(), f"{name} {str(made)[:4000]}"


def bombard(switch: SoftSwitch, seed: int, election_id: int) -> Counter[int]:
    """Returns how often each code was answered."""
    maker, good = Maker(seed), good_requests(election_id)
    seen: Counter[int] = Counter()
    with grpc.insecure_channel(switch.grpc_addr) as channel:
        for number in range(CALLS):
            name, data, told = draw(maker, good)
            result = send(channel, name, data)
            check(result, f"seed {seed} call {number}: {told}")
            seen[result[0]] += 1
    return seen


@pytest.mark.parametrize("seed", SEEDS)
def test_who_is_not_primary_changes_nothing(switch: SoftSwitch, primary: Client, seed: int) -> None:
    before = state(primary)
    seen = bombard(switch, seed, election_id=1)
    assert seen[rpc_code.PERMISSION_DENIED] > CALLS // 20, seen
    assert state(primary) == before


@pytest.mark.parametrize("seed", SEEDS)
def test_the_primary_s_mistakes_break_nothing(
    switch: SoftSwitch, primary: Client, seed: int
) -> None:
    before = state(primary)
    assert primary.election_id is not None
    bombard(switch, seed, election_id=primary.election_id)
    # It may have changed anything that it may change; but the switch is as good as new.
    primary.set_config(features_config(cookie=77))
    primary.write_updates(good_updates())
    assert state(primary) == before


@pytest.mark.parametrize("seed", SEEDS)
def test_streams_of_noise(switch: SoftSwitch, primary: Client, seed: int) -> None:
    """Each stream is answered or ended; the primary stays what it is."""
    before = state(primary)
    maker = Maker(seed)
    hello = p4r.StreamMessageRequest(
        arbitration=p4r.MasterArbitrationUpdate(device_id=DEVICE, election_id=U128.encode(5))
    )
    with grpc.insecure_channel(switch.grpc_addr) as channel:
        kind: Any = channel.stream_stream
        stream = kind("/p4.v1.P4Runtime/StreamChannel")
        for number in range(CALLS // 10):
            requests = [hello.SerializeToString()] if maker.random.random() < 0.5 else []
            for _ in range(maker.random.randint(1, 5)):
                if maker.random.random() < 0.2:
                    requests.append(maker.noise(hello))
                else:
                    requests.append(lower(maker, hello).SerializeToString())
            code, details = outcome(stream(iter(requests), timeout=CALL_TIMEOUT_S))
            told = f"seed {seed} stream {number}: {requests!r}: {details}"
            assert code not in (*BUGS, rpc_code.DEADLINE_EXCEEDED), told
    assert state(primary) == before
    primary.write("DELETE", table_entry=ROWS[0])


def outcome(responses: Any) -> tuple[int, str]:
    """How a stream ended."""
    try:
        for _ in responses:
            pass
    except grpc.RpcError as error:
        return int(error.code().value[0]), error.details() or ""
    return rpc_code.OK, ""


def test_a_switch_stops_after_noise(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with SoftSwitch([UdpPort(1)], target=default_target(tmp_path)) as switch:
        with grpc.insecure_channel(switch.grpc_addr) as channel:
            kind: Any = channel.stream_stream
            stream = kind("/p4.v1.P4Runtime/StreamChannel")
            for _ in range(20):
                code, details = outcome(stream(iter([b"\xff\xff"]), timeout=CALL_TIMEOUT_S))
                assert code == rpc_code.INVALID_ARGUMENT, details
            for name in METHODS:
                assert send(channel, name, b"\xff\xff")[0] == rpc_code.INVALID_ARGUMENT
        server = switch._server
        assert server is not None
        assert server.stop(0).wait(CALL_TIMEOUT_S)  # gRPC has lost track of none
    assert not caplog.records  # and wrote nothing for any


def lower(maker: Maker, hello: Message) -> Any:
    """A stream message that does not, by chance, win the election: that would be its right."""
    while True:
        made: Any = (
            maker.message(type(hello)) if maker.random.random() < 0.5 else maker.mutation(hello)
        )
        if made.arbitration.election_id.high < PRIMARY >> 64:
            return made
