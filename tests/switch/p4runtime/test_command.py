"""`ina switch`: one ready line, a clean end, one line for what is wrong."""

from __future__ import annotations

import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ina.cli.main import run
from tests.switch.ports.conftest import wait_until
from tests.worlds.fakes.p4runtime import PROGRAMS, Client, features_config
from tests.worlds.processes.switch import command, running_switch

INFO = str(PROGRAMS / "features.p4info.txtpb")
PROGRAM = str(PROGRAMS / "features.json")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_ready_and_end(number: int, code: int) -> None:
    with running_switch("--port", "1=udp:", "--port", "2=udp:127.0.0.1:0") as switch:
        with Client(switch.grpc_addr) as client:
            client.become_primary().set_config(features_config())
            ended, stderr = switch.stop(number)
        host, udp_port = switch.ready["ports"]["1"].removeprefix("udp:").split(":")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind((host, int(udp_port)))  # free again
    assert (ended, stderr) == (code, "")


def test_a_program_to_start_with() -> None:
    with (
        running_switch("--port", "1=udp:", "--p4info", INFO, "--program", PROGRAM) as switch,
        Client(switch.grpc_addr) as client,
    ):
        assert client.get_config().config == features_config()


def test_the_line_for_people() -> None:
    process = subprocess.Popen(
        command("--grpc-addr", "127.0.0.1:0", "--port", "1=udp:"), stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("ready: P4Runtime 127.0.0.1:")
        assert "port 1 udp:127.0.0.1:" in line
    finally:
        process.terminate()
        process.communicate(timeout=30)


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    """A number that is in use for TCP and for UDP."""
    with socket.socket() as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", tcp.getsockname()[1]))
        yield tcp.getsockname()[1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--grpc-addr", "127.0.0.1:{taken}"], "address 127.0.0.1:{taken}: Address already"),
        (["--port", "1=udp:127.0.0.1:{taken}"], "udp 127.0.0.1:{taken}: bind: Address already"),
        (["--grpc-addr", "nonsense"], "P4Runtime address 'nonsense': expected HOST:PORT"),
        (["--port", "1=tcp:x"], "unknown kind 'tcp'"),
        (["--port", "udp:127.0.0.1:1"], "expected NUMBER=KIND:PLACE"),
        (["--port", "1=udp:127.0.0.1"], "expected udp:ADDRESS:PORT"),
        (["--port", "1=udp:localhost:1"], "'localhost' is not an IPv4 address"),
        (["--port", "1=udp:127.0.0.1:70000"], "UDP port 70000"),
        (["--port", "511=udp:"], "port number 511: not in 0..510"),
        (["--port", "510=udp:"], "port number 510 is used twice: by the CPU port"),
        (["--port", "1=udp:", "--port", "1=udp:"], "port number 1 is used twice"),
        (["--port", "1=afpacket:no-such-if"], "interface no-such-if"),
        (["--port", "1=afpacket:"], "'' is not an interface name"),
        (["--port", "1=pcap:"], "needs a file"),
        (["--port", "1=pcap:/nonexistent.pcap"], "/nonexistent.pcap: No such file"),
        (["--port", f"1=pcap:{PROGRAM}"], "features.json, byte 0: not a pcap file"),
        (["--loss-rate", "1.5"], "loss rate 1.5: not in 0..1"),
        (["--device-id=-1"], "--device-id"),
        (["--program", PROGRAM], "--p4info and --program go together"),
        (["--p4info", "/nonexistent", "--program", PROGRAM], "P4Info /nonexistent: No such file"),
        (["--p4info", PROGRAM, "--program", PROGRAM], "P4Info "),
        (["--p4info", INFO, "--program", INFO], "JSON"),
    ],
)  # fmt: skip
def test_wrong_input(
    options: list[str], said: str, taken: int, capsys: pytest.CaptureFixture[str]
) -> None:
    defaults = [] if "--grpc-addr" in options else ["--grpc-addr", "127.0.0.1:0"]
    if "--port" not in options:
        defaults += ["--port", "1=udp:"]
    filled = [option.replace("{taken}", str(taken)) for option in options]
    threads = threading.active_count()
    assert run(["switch", *defaults, *filled]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1
    assert said.replace("{taken}", str(taken)) in printed.err
    wait_until(lambda: threading.active_count() <= threads, "no thread is left")


def test_wrong_input_of_a_process(taken: int) -> None:
    result = subprocess.run(
        command("--grpc-addr", f"127.0.0.1:{taken}"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1)


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("INA_CC", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    options = ["--grpc-addr", "127.0.0.1:0", "--port", "1=udp:", "--p4info", INFO]
    result = subprocess.run(
        command(*options, "--program", PROGRAM), capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert (result.returncode, result.stderr.count("\n")) == (2, 1)
    assert "compiler" in result.stderr
