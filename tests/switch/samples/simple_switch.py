"""BMv2's `simple_switch` as a function: a program and packets in, packets out; no network."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import time
from pathlib import Path

from scapy.utils import RawPcapReader

from tests.switch.samples.packets import INGRESS_PORTS, Packet

BINARY = "simple_switch"
EGRESS_PORTS = 32
MAX_PACKETS = 60
"""BMv2 drops what goes into an egress queue of 64 packets that is full."""
DEADLINE_S = 60.0
_QUIET_LOOKS = 5
_LOOK_S = 0.01
_PCAP = struct.Struct("<IHHiIII")
_RECORD = struct.Struct("<IIII")


class AbortedError(Exception):
    """simple_switch ended by itself: an assertion, or it does not take the program."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.left: dict[int, list[bytes]] = {}  # what had left before


def run(program: str, packets: list[Packet], folder: Path) -> dict[int, list[bytes]]:
    """What leaves each port below EGRESS_PORTS, in order; AbortedError has its last words."""
    assert len(packets) <= MAX_PACKETS
    folder.mkdir()
    (folder / "program.json").write_text(program)
    for port in range(EGRESS_PORTS):
        mine = [(n, data) for n, (where, data) in enumerate(packets) if where == port]
        with (folder / f"p{port}_in.pcap").open("wb") as file:
            file.write(_PCAP.pack(0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
            for number, data in mine:  # the earliest of all files is read first
                file.write(_RECORD.pack(1, number, len(data), len(data)) + data)
    options = [f"-i{port}@p{port}" for port in range(EGRESS_PORTS)]
    options += ["--use-files", "0", "--thrift-port", str(_free_port())]
    options += ["--notifications-addr", f"ipc://{folder}/notifications"]
    with (folder / "words").open("wb") as words:
        process = subprocess.Popen(
            [BINARY, *options, "program.json"], cwd=folder, stdout=words, stderr=words
        )
    try:
        _wait(process, folder)
    except AbortedError as error:
        error.left = _outputs(folder)
        raise
    finally:
        process.kill()
        process.wait()
    return _outputs(folder)


def _outputs(folder: Path) -> dict[int, list[bytes]]:
    return {port: _read(folder / f"p{port}_out.pcap") for port in range(EGRESS_PORTS)}


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


def _wait(process: subprocess.Popen[bytes], folder: Path) -> None:
    """Until it has read everything and all its threads have slept for a while."""
    deadline, quiet = time.monotonic() + DEADLINE_S, 0
    while quiet < _QUIET_LOOKS:
        time.sleep(_LOOK_S)
        if process.poll() is not None:
            words = (folder / "words").read_text(errors="replace").strip().splitlines()
            raise AbortedError(words[-1] if words else f"exit status {process.returncode}")
        assert time.monotonic() < deadline, f"simple_switch is still busy after {DEADLINE_S} s"
        quiet = quiet + 1 if _is_quiet(process.pid, folder) else 0


def _is_quiet(pid: int, folder: Path) -> bool:
    place = Path(f"/proc/{pid}")
    with contextlib.suppress(OSError):
        for link in (place / "fd").iterdir():
            file = link.readlink()
            if file.name.endswith("_in.pcap") and file.parent == folder:
                position = int((place / "fdinfo" / link.name).read_text().split()[1])
                if position < file.stat().st_size:
                    return False
        states = [
            (task / "stat").read_text().rpartition(")")[2].split()[0]
            for task in (place / "task").iterdir()
        ]
        outputs = len(list(folder.glob("*_out.pcap")))
        return outputs == EGRESS_PORTS and all(state == "S" for state in states)
    return False


def _read(path: Path) -> list[bytes]:
    if not path.exists() or path.stat().st_size == 0:
        return []  # BMv2 writes the file's head with the first packet
    return [bytes(data) for data, _ in RawPcapReader(str(path))]


def outputs(sent: list[Packet]) -> dict[int, list[bytes]]:
    """The soft switch's output in the same form."""
    found: dict[int, list[bytes]] = {port: [] for port in range(EGRESS_PORTS)}
    for port, data in sent:
        if port in found:
            found[port].append(data)
    return found


assert INGRESS_PORTS <= EGRESS_PORTS
