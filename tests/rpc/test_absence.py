"""Why nobody answers, in words that say what to look at."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import grpc
import pytest

from ina.cli import main
from ina.host import ControllerTimeoutError, Session, WorkerOptions
from ina.host.errors import TransportError
from ina.host.own_addresses import why_not_own
from ina.host.udp import open_socket
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2
from ina.rpc.absence import absence, in_words, why_absent
from ina.rpc.controller_pb2_grpc import OperatorStub
from ina.switch.ports import AddressError, UdpPort
from ina.switch.server import SoftSwitch

NOBODYS_ADDRESS = "203.0.113.1"  # RFC 5737: of documentation, and no machine's


@pytest.fixture
def silent_port() -> str:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return f"127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def other_server() -> Iterator[str]:
    """Which greets as OpenSSH does."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def test_nobody_listens(silent_port: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = "nobody listens there: it does not run, or at another address"
    assert main.run(["job", "list", "--controller", silent_port]) == 2
    assert capsys.readouterr().err == f"error: controller {silent_port}: {said}\n"
    with pytest.raises(ControllerTimeoutError) as caught:
        Session.join(silent_port, "j", 0, 1, WorkerOptions(timeout_s=0.3))
    assert str(caught.value) == f"controller {silent_port}: {said}, tried for 0.3 s"


def test_elsewhere_it_may_listen_on_loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refuse)
    assert str(absence("10.0.0.1:17700")).endswith(", or on its own 127.0.0.1 only")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (socket.gaierror(-2, "Name or service not known"), "no host is known by the name 'ctl'"),
        (TimeoutError(), "no answer to a connection: the host is down, a firewall"),
        (OSError(113, "No route to host"), "no way leads there: No route to host"),
    ],
)
def test_what_keeps_from_a_connection(
    error: OSError, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    assert why_absent("ctl:17700", "whatever gRPC says").startswith(said)


def test_something_else_listens(other_server: str) -> None:
    with grpc.insecure_channel(other_server) as channel:
        operator = OperatorStub(channel)
        with pytest.raises(grpc.RpcError) as caught:
            operator.ListJobs(pb2.ListJobsRequest(), timeout=20)
    error: grpc.RpcError = caught.value
    assert why_absent(other_server, error.details()) == "what listens there is no gRPC server"


def test_what_a_server_says_stays_and_grpcs_words_do_not() -> None:
    assert in_words("standby: another\ncontroller is primary") == (
        "standby: another controller is primary"
    )
    refused = (
        "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to"
        " connect to remote host: connect: Connection refused (111)"
    )
    assert in_words(refused) == "no connection: Connection refused"
    assert in_words("Deadline Exceeded") == "no answer in time"


def test_an_address_that_is_nobody_s_here() -> None:
    assert why_not_own("127.0.0.1") == ""
    assert why_not_own(NOBODYS_ADDRESS).startswith(
        f"this host has no IPv4 address {NOBODYS_ADDRESS}; it has "
    )
    with pytest.raises(TransportError, match=f"no IPv4 address {NOBODYS_ADDRESS}"):
        open_socket(Peer.at(("127.0.0.1", 9)), NOBODYS_ADDRESS)
    with pytest.raises(AddressError, match="this machine has no such address"):
        SoftSwitch([UdpPort(1, NOBODYS_ADDRESS, 0)]).start()
    with pytest.raises(AddressError, match="P4Runtime address"):
        SoftSwitch([UdpPort(1)], grpc_addr=f"{NOBODYS_ADDRESS}:0").start()
