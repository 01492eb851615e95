"""What a job's switch costs: real workers around it, with links of a rate, in user space and in the
kernel.

Its CPU time is that of the threads that move packets, as :mod:`.switch_frames` has them.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ina import netns
from ina.bench.cpu import SWITCH_THREAD, cpu_ns, polls, thread
from ina.bench.emulated_star import star_topology
from ina.bench.report import Ratio
from ina.emulate import job
from ina.emulate.emulation import Emulation, emulate
from ina.emulate.namespaces import namespace, processes
from ina.emulate.topology import SwitchKind, Topology
from ina.emulate.wiring import DATA_INTERFACE
from ina.errors import InaError
from ina.netns import End

_ELEMS = 1 << 20
_TIMEOUT_S = 240.0


@dataclass(frozen=True)
class JobRow:
    """One device."""

    switch: str
    values: int
    workers: int
    link_bit_s: float
    """Of each worker's link; 0: whatever it takes."""
    packets_per_second: float
    """That the workers sent, those again included."""
    gradient_gb_per_second: float
    """int32 values of them, of all workers."""
    cpu_ns_per_packet: float
    cores_busy: float
    """By the switch."""
    wrong: int


def measure_job(
    kind: SwitchKind, values: int, workers: int, seconds: float, link_bit_s: float
) -> JobRow:
    """Sums of int32 without end, for so long. Raises as :func:`ina.emulate.emulation.emulate`."""
    rates = {f"h{number}": link_bit_s or None for number in range(1, workers + 1)}
    topology = star_topology(rates, kind, {"switch": {"values": values}})
    with (
        TemporaryDirectory(prefix="ina-bench-") as folder,
        emulate(topology, Path(folder), lambda step: None) as emulation,
    ):
        movers = _movers(kind, topology, emulation)
        before, started = _cpu_ns(movers), time.perf_counter()
        done = job.run_job(
            emulation.state,
            emulation.state.hosts,
            [sys.executable, "-m", "ina.bench.host_worker", str(_ELEMS), str(seconds)],
            timeout_s=_TIMEOUT_S + seconds,
            on_text=lambda text: None,
            check=emulation.check,
        )
        spent_ns, passed_s = _cpu_ns(movers) - before, time.perf_counter() - started
        records = [_record(Path(rank["log"])) for rank in done["ranks"]]
    packets = sum(record["packets"] for record in records)
    rate = packets / max(record["seconds"] for record in records)
    everything = sum(record["packets_in_all"] for record in records)
    return JobRow(
        switch=kind,
        values=values,
        workers=workers,
        link_bit_s=link_bit_s,
        packets_per_second=rate,
        gradient_gb_per_second=rate * 4 * values / 1e9,
        cpu_ns_per_packet=spent_ns / everything,
        cores_busy=spent_ns / 1e9 / passed_s,
        wrong=sum(record["wrong"] for record in records),
    )


def ratios(rows: list[JobRow]) -> list[Ratio]:
    """The switch's CPU time of a packet, in user space over the kernel's."""
    soft = {(row.values, row.workers): row for row in rows if row.switch == "soft"}
    return [
        Ratio(
            f"{row.values} values n={row.workers} CPU soft/xdp",
            soft[row.values, row.workers].cpu_ns_per_packet / row.cpu_ns_per_packet,
        )
        for row in rows
        if row.switch == "xdp" and (row.values, row.workers) in soft
    ]


def _movers(kind: SwitchKind, topology: Topology, emulation: Emulation) -> list[tuple[int, int]]:
    """Threads that move the switch's packets, and whose they are; threads poll all its links."""
    for host in topology.hosts:
        end = End(namespace(topology.name, host.name), DATA_INTERFACE)
        netns.receive_in_bursts(end)  # an interface without it polls nothing
        netns.poll_in_thread(end)
    ports = [str(end) for link in topology.links for end in link.ends if end.port is not None]
    for port in ports if kind == "xdp" else ():
        netns.poll_in_thread(End(emulation.state.net, port))
    if kind == "xdp":
        return [(it, it) for it in polls(ports)]
    for process in processes([emulation.state.net]):
        try:
            return [(thread(SWITCH_THREAD, process), process)]
        except (InaError, OSError):
            continue
    raise InaError("bench switch: no process has a thread that moves packets")


def _cpu_ns(movers: list[tuple[int, int]]) -> int:
    return sum(cpu_ns(it, process) for it, process in movers)


def _record(log: Path) -> dict[str, Any]:
    for line in log.read_text("utf-8", "replace").splitlines():
        if line.startswith('{"packets"'):
            record: dict[str, Any] = json.loads(line)
            return record
    raise InaError(f"bench switch: {log.name}: a worker said nothing")
