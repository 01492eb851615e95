"""A command whose reader goes away (``ina ... | head -1``) ends at once, silently, with 0."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ina.protocol.generated.scapy_layer import INA
from tests.worlds.processes.stand_ins import python

TIMEOUT_S = 120.0
# Far more text than a pipe holds (64 KiB), so that the writer meets the closed end while it writes.
PACKETS = 1000


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pipes") / "many.pcap"
    udp = IP(src="10.0.0.1", dst="10.0.0.254") / UDP(sport=5000, dport=17760)
    frame = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / udp
    wrpcap(str(path), [frame / INA(job=3, epoch=1, seq=8, values=[1, 2])] * PACKETS)
    return str(path)


def start(args: list[str], stdout: int, stderr: int) -> subprocess.Popen[str]:
    """A fork, but where what counts is the interpreter's own end: after few words, after many."""
    executable = sys.executable if args[0] == "--version" or "follow" in args else python()
    # Else nothing would be left in a buffer when the interpreter ends.
    environ = {name: it for name, it in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [executable, "-m", "ina", *args], stdin=subprocess.DEVNULL,
        stdout=stdout, stderr=stderr, text=True, env=environ,
    )  # fmt: skip


def unread() -> int:
    """The write end of a pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_a_reader_of_one_line_ends_the_command(capture: str, json: list[str]) -> None:
    with start(["pcap", "decode", capture, *json], subprocess.PIPE, subprocess.PIPE) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline()
        command.stdout.close()
        said = command.stderr.read()
        assert (command.wait(TIMEOUT_S), said) == (0, "")


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--version"], 0),
        (["--help"], 0),
        (["p4", "--help"], 0),
        (["doctor"], 0),
        (["doctor", "--json"], 0),
        (["pcap", "follow", "CAPTURE", "--job", "3", "--slot", "0"], 0),
        (["pcap", "decode", "/no/such.pcap"], 2),
    ],
)
@pytest.mark.parametrize("both", [False, True], ids=["stdout", "stdout and stderr"])
def test_nobody_reads(args: list[str], code: int, both: bool, capture: str, tmp_path: Path) -> None:
    writer = unread()
    args = [capture if arg == "CAPTURE" else arg for arg in args]
    with (tmp_path / "stderr").open("w") as stderr:
        command = start(args, writer, writer if both else stderr.fileno())
        os.close(writer)
        assert command.wait(TIMEOUT_S) == code
    said = (tmp_path / "stderr").read_text()
    assert said.startswith("error: ") if code and not both else said == ""
