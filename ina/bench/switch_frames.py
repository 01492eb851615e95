"""What a switch on cables of virtual Ethernet costs a frame: in user space, and in the kernel.

Contributions come from the kernel, in batches as a network card hands them over, by as many cables
as there are workers; what leaves is dropped at the cables' ends. Nothing of that is on the account
of the switch, which is the CPU time of the threads that move its packets: the port loop in user
space; the kernel threads that poll the cables (threaded NAPI), where the program is in the kernel.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ina import netns
from ina.bench.cpu import SWITCH_THREAD, cpu_ns, polls, thread
from ina.bench.pipeline import install
from ina.bench.pipeline_frames import CHUNKS
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.bench.xdp_turns import Turns
from ina.emulate.topology import SwitchKind
from ina.netns import End
from ina.p4 import compiled, names
from ina.switch.pipeline import Pipeline
from ina.switch.port_set import Impairment
from ina.switch.ports import AfPacketPort
from ina.switch.target import Target
from ina.switch.targets import default_target, xdp_target
from ina.switch.xdp.links import Attached
from ina.testing.links import Links, cannot_link

DEVICES: tuple[SwitchKind, ...] = ("soft", "xdp")
FRAMES = 20_000
"""Of a sample."""
MTU_BYTES = 1500
_JOB_INDEX = 0
_CONTRIBUTIONS = "PoolIngress.distribute.job_contributions"
_RESULTS = "PoolIngress.distribute.job_results"
_ROUND_S, _POLL_S = 1.0, 50e-6


@dataclass(frozen=True)
class FrameRow:
    """One device, build and number of workers."""

    switch: str
    values: int
    workers: int
    packets_per_second: float
    """That came in, as long as the switch was busy with them; by one core."""
    low_packets_per_second: float
    high_packets_per_second: float
    cpu_ns_per_packet: float
    samples: int
    frames: int
    """That were sent; of each a contribution came of it."""
    wrong: int
    """Frames without a contribution, and sums that are too many or too few."""


def measure_frames(
    device: SwitchKind, values: int, workers: int, frames: int, samples: int
) -> FrameRow:
    """``frames``: of a sample. Raises XdpError, NetnsError, DeadlineError; as Target.load."""
    target = default_target() if device == "soft" else xdp_target(at_ports=True)
    with (
        Turns(values, workers) as turns,
        Links(workers, switch_outside=True, mtu_bytes=MTU_BYTES) as links,
        target.load(compiled(values).bmv2_json) as pipeline,
        _running(target, pipeline, links),
        _hosts(links, turns),
    ):
        install(pipeline, workers)
        movers = _movers(device, links)
        busy: list[float] = []
        sent = 0
        for _ in range(samples + 1):
            before = _cpu_ns(movers)
            now = _send(turns, pipeline, frames)
            busy.append((_cpu_ns(movers) - before) / now)
            sent += now
        contributions, results = (_count(pipeline, name) for name in (_CONTRIBUTIONS, _RESULTS))
    cost = spread(busy[1:])  # one warms up
    return FrameRow(
        switch=device,
        values=values,
        workers=workers,
        packets_per_second=1e9 / cost.median,
        low_packets_per_second=1e9 / cost.high,
        high_packets_per_second=1e9 / cost.low,
        cpu_ns_per_packet=cost.median,
        samples=samples,
        frames=sent,
        wrong=abs(sent - contributions) + abs(sent // workers - results),
    )


def why_not() -> str:
    """Why nothing can be measured here; empty: it can."""
    trouble = xdp_target().trouble()
    return f"device xdp {trouble}" if trouble else cannot_link()


def ratios(rows: list[FrameRow]) -> list[Ratio]:
    """The kernel's packets a second and core over user space's."""
    soft = {(row.values, row.workers): row for row in rows if row.switch == "soft"}
    return [
        Ratio(
            f"{row.values} values n={row.workers} xdp/soft",
            row.packets_per_second / soft[row.values, row.workers].packets_per_second,
        )
        for row in rows
        if row.switch == "xdp" and (row.values, row.workers) in soft
    ]


@contextlib.contextmanager
def _running(target: Target, pipeline: Pipeline, links: Links) -> Iterator[None]:
    """The switch at its ends of the cables."""
    specs = [AfPacketPort(port, end) for port, end in links.switch_ends.items()]
    ports = target.ports(specs, names.CPU_PORT, Impairment())
    ports.open()
    ports.start()
    try:
        ports.install(pipeline)
        yield
    finally:
        ports.stop()
        ports.close()


def _movers(device: str, links: Links) -> list[int]:
    """Threads that move the switch's packets. From now on threads poll all ends of the cables."""
    for end in links.host_ends.values():
        netns.poll_in_thread(End(links.namespace, end))
    for end in links.switch_ends.values():
        if device == "soft":
            netns.receive_in_bursts(End(None, end))
        netns.poll_in_thread(End(None, end))
    return [thread(SWITCH_THREAD)] if device == "soft" else polls(links.switch_ends.values())


@contextlib.contextmanager
def _hosts(links: Links, turns: Turns) -> Iterator[None]:
    """Hosts that send what ``turns`` makes, and drop what comes."""
    with contextlib.ExitStack() as attached:
        with netns.inside(links.namespace):
            indices = {port: socket.if_nametoindex(end) for port, end in links.host_ends.items()}
            turns.send_by({port - 1: index for port, index in indices.items()})
            for index in indices.values():
                attached.callback(Attached.attach(turns.nothing, index).close)
        yield


def _send(turns: Turns, pipeline: Pipeline, frames: int) -> int:
    """Rounds of a frame from each worker for each slot, one when the last one has been summed."""
    a_round = CHUNKS * turns.macros["WORKERS"]
    sent = 0
    while sent < frames:
        before = _count(pipeline, _CONTRIBUTIONS)
        turns.send(a_round)
        sent += a_round
        deadline = time.monotonic() + _ROUND_S
        while _count(pipeline, _CONTRIBUTIONS) < before + a_round:
            if time.monotonic() >= deadline:
                break  # some are lost; it is told
            time.sleep(_POLL_S)
    return sent


def _count(pipeline: Pipeline, counter: str) -> int:
    return pipeline.counter(counter, _JOB_INDEX)[0]


def _cpu_ns(movers: list[int]) -> int:
    return sum(cpu_ns(it, it) for it in movers)
