"""gRPC servers with real certificates, and clients that are wrong: each learns what is wrong."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import grpc
import pytest

from ina.rpc.controller_pb2 import LeaveRequest
from ina.rpc.controller_pb2_grpc import ControllerStub
from ina.rpc.tls import PLAIN_TEXT, TlsFiles, channel_credentials, server_credentials
from ina.rpc.tls_probe import tls_trouble
from tests.worlds.fakes.certificates import Authority

DEADLINE_S = 20.0


class World(NamedTuple):
    authority: Authority
    server: TlsFiles
    client: TlsFiles
    stranger: TlsFiles  # signed by another authority, and trusting only that


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    authority = Authority(tmp_path_factory.mktemp("ours"))
    server = authority.issue("server", usage="serverAuth")
    client = authority.issue("client", usage="clientAuth")
    stranger = Authority(tmp_path_factory.mktemp("theirs")).issue("stranger")
    return World(authority, server, client, stranger)


@contextmanager
def serving(files: TlsFiles, *, unchecked: bool = False) -> Iterator[str]:
    with ThreadPoolExecutor(2) as pool:
        server = grpc.server(pool)
        if unchecked:
            pair = Path(files.key).read_bytes(), Path(files.cert).read_bytes()
            port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
        elif files:
            port = server.add_secure_port("127.0.0.1:0", server_credentials(files))
        else:
            port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        try:
            yield f"127.0.0.1:{port}"
        finally:
            server.stop(0).wait(DEADLINE_S)


def connects(address: str, files: TlsFiles) -> bool:
    """Whether gRPC itself reaches a server; it then says that nothing is served."""
    if files:
        channel = grpc.secure_channel(address, channel_credentials(files))
    else:
        channel = grpc.insecure_channel(address)
    with channel:
        stub = ControllerStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            stub.Leave(LeaveRequest(), timeout=DEADLINE_S)
        return caught.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_sides_that_agree_have_no_trouble(world: World) -> None:
    ca_only = replace(world.client, cert="", key="")
    for server, client in [
        (PLAIN_TEXT, PLAIN_TEXT),
        (replace(world.server, ca=""), ca_only),
        (world.server, world.client),
    ]:
        with serving(server) as address:
            assert connects(address, client)
            assert tls_trouble(address, client) is None


def trouble(server: TlsFiles, client: TlsFiles) -> str:
    """What the probe says; gRPC must indeed have failed."""
    with serving(server) as address:
        assert not connects(address, client)
        said = tls_trouble(address, client)
    assert said is not None
    assert "\n" not in said
    return said


def test_a_server_that_another_authority_signed(world: World) -> None:
    client = replace(world.client, ca=world.stranger.ca)
    said = trouble(world.server, client)
    assert said == f"its certificate is not signed by tls.ca {world.stranger.ca}"


def test_a_server_whose_certificate_has_expired_since_it_started(world: World) -> None:
    expired = world.authority.issue("expired", end="20200102000000Z")
    future = world.authority.issue("future", start="20980101000000Z")
    for files, said in [(expired, "has expired"), (future, "is not valid yet")]:
        with serving(files, unchecked=True) as address:
            assert not connects(address, world.client)
            assert tls_trouble(address, world.client) == f"its certificate {said}"


def test_a_server_of_another_name(world: World) -> None:
    other = world.authority.issue("other", names="DNS:switch.example,IP:10.0.0.9")
    said = trouble(other, world.client)
    assert said == "its certificate is not for 127.0.0.1 (subjectAltName)"


def test_a_client_without_a_certificate(world: World) -> None:
    said = trouble(world.server, replace(world.client, cert="", key=""))
    assert said == "it asks for a client certificate: set tls.cert and tls.key"


def test_a_client_that_another_authority_signed(world: World) -> None:
    said = trouble(world.server, replace(world.stranger, ca=world.client.ca))
    assert said.startswith(f"it refuses tls.cert {world.stranger.cert} (")


def test_plain_text_and_tls(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trouble(PLAIN_TEXT, world.client) == "it speaks plain text, and tls.ca asks for TLS"
    assert trouble(replace(world.server, ca=""), PLAIN_TEXT) == "it speaks TLS: set tls.ca"
    assert trouble(world.server, PLAIN_TEXT) == "it speaks TLS: set tls.ca"
    with serving(world.server) as address:  # the environment's names, without files given
        assert tls_trouble(address) == "it speaks TLS: set INA_TLS_CA"
        monkeypatch.setenv("INA_TLS_CA", world.stranger.ca)
        assert tls_trouble(address) == (
            f"its certificate is not signed by INA_TLS_CA {world.stranger.ca}"
        )
        monkeypatch.setenv("INA_TLS_CA", "/nowhere.pem")
        assert tls_trouble(address) == "INA_TLS_CA /nowhere.pem: No such file or directory"


def test_where_nobody_listens_tls_is_not_the_trouble(world: World) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        assert tls_trouble(address, world.client) is None
    assert tls_trouble("no address", world.client) is None


def test_a_server_that_says_nothing_is_not_waited_for(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        assert tls_trouble(address, world.client, timeout_s=0.1) is None
        assert tls_trouble(address, PLAIN_TEXT, timeout_s=0.1) is None
