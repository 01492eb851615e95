"""A switch with two UDP ports, and clients that are closed after the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest

from ina.switch.ports import UdpPort
from ina.switch.server import SoftSwitch
from ina.switch.targets import default_target
from tests.worlds.fakes.p4runtime import Client, code_of, errors_of, features_config

Connect = Callable[..., Client]


@pytest.fixture
def switch(cache_dir: Path) -> Iterator[SoftSwitch]:
    with SoftSwitch([UdpPort(1), UdpPort(2)], target=default_target(cache_dir)) as soft_switch:
        yield soft_switch


@pytest.fixture
def connect(switch: SoftSwitch) -> Iterator[Connect]:
    """connect(role=...): a client without a stream yet."""
    clients: list[Client] = []

    def make(role: str = "") -> Client:
        clients.append(Client(switch.grpc_addr, role=role))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def client(connect: Connect) -> Client:
    """The primary, with the features program set."""
    primary = connect().become_primary()
    primary.set_config(features_config())
    return primary


def refused(operation: Callable[[], object], code: int, text: str = "") -> None:
    """The whole RPC must fail with this code and say `text`."""
    with pytest.raises(grpc.RpcError) as info:
        operation()
    assert (code_of(info.value), text in str(info.value.details())) == (code, True), info.value


def update_refused(operation: Callable[[], object], code: int, text: str = "") -> None:
    """The only update of a Write (or request of a Read) must fail with this code and text."""
    with pytest.raises(grpc.RpcError) as info:
        operation()
    (error,) = errors_of(info.value)
    assert (error.canonical_code, text in error.message) == (code, True), error
