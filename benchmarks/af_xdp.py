"""Whether AF_XDP would pay: a bare probe beside UDP sockets, on one virtual cable, in turns.

As root: ``python -m benchmarks.af_xdp``. A sender and a receiver of a core each, without ina:
AF_XDP sockets (copy mode, native XDP), and UDP sockets that send super-packets (GSO) and take them
whole (GRO), as ina's own ports do. Exit codes: 0, 2 it could not be measured.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from benchmarks.measured import RESULTS
from ina import netns
from ina.bench.cpu import machine_s
from ina.bench.spread import Spread, spread
from ina.errors import InaError, UnavailableError
from ina.netns import End

SOURCE = Path(__file__).with_suffix("").with_name("af_xdp_probe.c")
WORTH_IT = 1.3
"""Of the frames that sockets move: below, two more kinds of ports are not worth their code."""
WAYS = ("udp", "xdp")
PAYLOAD_BYTES = 1456
_SECONDS, _ROUNDS = 2.0, 5
_PORT = 7000
_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Sample:
    """One way, once."""

    way: str
    frames_per_second: float
    """That came."""
    lost: float
    """Share of what was sent."""
    cpu_ns_per_frame: float
    """Of the machine, by frame that came."""


class Cable:
    """Two namespaces and a pair of virtual Ethernet between them, one queue each."""

    def __init__(self) -> None:
        """Raises NetnsError."""
        self.spaces = (f"ina-xdp-a-{os.getpid()}", f"ina-xdp-b-{os.getpid()}")
        self.ends = tuple(End(space, "eth0") for space in self.spaces)
        for space in self.spaces:
            netns.add_host(space)
        queues = "numrxqueues 1 numtxqueues 1"
        one, other = (f"eth0 netns {space} {queues}" for space in self.spaces)
        netns.ip_batch(None, [f"link add {one} type veth peer name {other}"])
        for number, space in enumerate(self.spaces):
            netns.ip(space, "addr", "add", f"10.77.0.{number + 1}/24", "dev", "eth0")
            netns.ip(space, "link", "set", "eth0", "up")

    def close(self) -> None:
        """Takes both away."""
        for space in self.spaces:
            netns.delete(space)


def build(folder: Path) -> Path:
    """The probe. Raises UnavailableError: it does not compile here."""
    program = folder / "af_xdp_probe"
    compiler = os.environ.get("CC", "cc")
    command = [compiler, "-O2", "-o", str(program), str(SOURCE)]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except OSError as error:
        raise UnavailableError(f"{compiler}: {error.strerror}") from None
    if done.returncode:
        raise UnavailableError(f"{SOURCE.name}: {done.stderr.strip().splitlines()[-1]}")
    return program


def sample(program: Path, cable: Cable, way: str, seconds: float) -> Sample:
    """Sends for so long. Raises UnavailableError: the kernel or an interface refuses."""
    near, far = cable.spaces
    receive = ["xdp-receive", "eth0"] if way == "xdp" else ["udp-receive", str(_PORT)]
    send = ["xdp-send", "eth0"] if way == "xdp" else ["udp-send", "10.77.0.2", str(_PORT)]
    cores = sorted(os.sched_getaffinity(0))
    busy_s, _ = machine_s()
    with _start(program, far, [*receive, str(seconds)], cores[-1]) as receiver:
        assert receiver.stdout is not None
        receiver.stdout.readline()  # it is ready
        with _start(program, near, [*send, str(seconds)], cores[0]) as sender:
            sent = _said(sender)
        came = _said(receiver)
    cpu_s = machine_s()[0] - busy_s
    frames = max(came["frames"], 1)
    return Sample(
        way, came["frames"] / came["seconds"], 1 - came["frames"] / sent["frames"],
        cpu_s * 1e9 / frames,
    )  # fmt: skip


def measure(seconds: float, rounds: int) -> list[Sample]:
    """In turns. Raises InaError."""
    if why := netns.why_not():
        raise UnavailableError(f"benchmarks.af_xdp {why}")
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        cable = Cable()
        try:
            return [sample(program, cable, way, seconds) for _ in range(rounds) for way in WAYS]
        finally:
            cable.close()


def rates(samples: Sequence[Sample], way: str) -> Spread:
    """Frames a second of one way."""
    return spread([one.frames_per_second for one in samples if one.way == way])


def gain(samples: Sequence[Sample]) -> float:
    """How many times as many frames AF_XDP moves."""
    return rates(samples, "xdp").median / rates(samples, "udp").median


def _start(program: Path, space: str, words: Sequence[str], core: int) -> subprocess.Popen[str]:
    command = netns.within(space, ["taskset", "-c", str(core), str(program), *words])
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _said(process: subprocess.Popen[str]) -> dict[str, float]:
    out, err = process.communicate(timeout=_TIMEOUT_S)
    if process.returncode:
        raise UnavailableError((err.strip() or out).splitlines()[-1])
    found: dict[str, float] = json.loads(out.splitlines()[-1])
    return found


def main() -> int:
    """Measure, print, save."""
    try:
        samples = measure(_SECONDS, _ROUNDS)
    except (InaError, subprocess.TimeoutExpired) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for way in WAYS:
        own = [one for one in samples if one.way == way]
        found, cpu_ns = rates(samples, way), spread([one.cpu_ns_per_frame for one in own]).median
        print(
            f"{way}  {found.median / 1e3:8.0f} k frames/s ({found.low / 1e3:.0f} to"
            f" {found.high / 1e3:.0f})  {found.median * PAYLOAD_BYTES * 8e-9:6.2f} Gbit/s"
            f"  {cpu_ns:6.0f} ns of CPU a frame"
        )
    verdict = "worth building" if gain(samples) >= WORTH_IT else "not worth building"
    print(f"AF_XDP / sockets: {gain(samples):.2f}; from {WORTH_IT} on: worth building: {verdict}")
    RESULTS.mkdir(exist_ok=True)
    text = msgspec.json.format(msgspec.json.encode(samples))
    (RESULTS / "af_xdp.json").write_bytes(text + b"\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
