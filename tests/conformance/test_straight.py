"""The soft switch's service without gRPC says what it says over gRPC."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ina.p4 import compiled, names
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS, DropReason
from ina.switch.p4runtime import Device as SwitchDevice
from ina.switch.server import SoftSwitch
from ina.switch.targets import default_target
from ina.tables.values import Counter, Entry, Group
from ina.testing.control_plane import P4RuntimeClient
from ina.testing.errors import DeviceError
from ina.testing.soft_device import SoftDevice
from ina.testing.state import forward
from ina.testing.straight import StraightClient
from tests.conformance.mutants import Built

HERE = forward(0x02_00_00_00_00_01, 1)


def load(client: P4RuntimeClient) -> None:
    client.set_pipeline(compiled(64))


def write_twice(client: P4RuntimeClient) -> None:
    load(client)
    client.insert([HERE, Group(7, ((1, 0),))])
    client.insert([HERE, forward(0x02_00_00_00_00_02, 2), Group(7, ((1, 0),))])


def modify_what_is_not_there(client: P4RuntimeClient) -> None:
    load(client)
    client.modify([Group(9, ((1, 0),))])


def delete_what_is_not_there(client: P4RuntimeClient) -> None:
    load(client)
    client.delete([HERE])


def name_what_is_not_there(client: P4RuntimeClient) -> None:
    load(client)
    client.insert([Entry("nothing", (), "", ())])


def count_beyond_the_end(client: P4RuntimeClient) -> None:
    load(client)
    client.counts([Counter(names.DROPS, 1 << 20)])


def count(client: P4RuntimeClient) -> None:
    load(client)
    assert client.counts([Counter(names.DROPS, it) for it in DropReason]) == [(0, 0)] * len(
        DropReason
    )


def write_before_there_is_a_program(client: P4RuntimeClient) -> None:
    client._wire.program = compiled(64)
    client.insert([HERE])


def said(asks: Callable[[P4RuntimeClient], None], client: P4RuntimeClient) -> str:
    try:
        asks(client)
    except DeviceError as error:
        return str(error).partition(" device 1: ")[2]
    return "nothing"


@pytest.mark.parametrize(
    "asks",
    [
        *(write_twice, modify_what_is_not_there, delete_what_is_not_there, name_what_is_not_there),
        *(count, count_beyond_the_end, write_before_there_is_a_program),
    ],
)
def test_both_say_the_same(asks: Callable[[P4RuntimeClient], None]) -> None:
    with SoftDevice() as straight:
        here = said(asks, straight.client)
    with SoftSwitch([]) as switch:
        client = P4RuntimeClient(switch.grpc_addr, 1)
        try:
            there = said(asks, client)
        finally:
            client.close()
    assert here == there
    assert (here == "nothing") == (asks in (delete_what_is_not_there, count))


def test_a_program_that_cannot_be_is_told_alike(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    program = Built(compiled(64).p4info, bad)
    test_both_say_the_same(lambda client: client.set_pipeline(program))


def refused(connect: Callable[[], P4RuntimeClient]) -> str:
    with pytest.raises(DeviceError) as refusal:
        connect()
    return str(refusal.value).partition(" device 2: ")[2]


def test_what_ends_a_stream_is_told_alike() -> None:
    """Another device's number, in the arbitration."""
    device = SwitchDevice(
        1, default_target(), install=lambda _pipeline: None, inject=lambda _packet: False
    )
    try:
        here = refused(lambda: P4RuntimeClient("here", 2, client=lambda: StraightClient(device)))
    finally:
        device.close()
    with SoftSwitch([]) as switch:
        there = refused(lambda: P4RuntimeClient(switch.grpc_addr, 2))
    assert here == there != ""


@pytest.mark.parametrize(
    ("mode", "values"),
    [
        pytest.param(
            mode,
            values,
            marks=[] if values == max(VALUES_PER_PACKET_BUILDS) else [pytest.mark.long],
        )
        for mode in (names.POOL, names.SHARED)
        for values in VALUES_PER_PACKET_BUILDS
    ],
)
def test_each_build_can_be_set_over_grpc(mode: str, values: int) -> None:
    """The longest message is the largest build's."""
    with SoftSwitch([]) as switch:
        client = P4RuntimeClient(switch.grpc_addr, 1)
        try:
            client.set_pipeline(compiled(values, mode))
            client.insert([HERE])
        finally:
            client.close()
