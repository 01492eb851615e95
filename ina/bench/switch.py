"""How fast a soft switch moves packets: through a real UDP port, the P4 program between.

Workers are processes of their own and sum arrays of int32, without end, by the real protocol. The
switch's cost is the CPU time of its one thread that moves packets, over the packets that came in;
results that leave are part of that cost.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ina.bench.cpu import SWITCH_THREAD, cpu_ns, thread
from ina.bench.emulated_star import star_topology
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.controller.config import USUAL_NETWORK
from ina.controller.embedded import Embedded
from ina.emulate import job
from ina.emulate.emulation import emulate
from ina.errors import DeadlineError, InaError
from ina.testing.bmv2_device import cannot_run_bmv2

_ELEMS = 1 << 20
_BMV2_ELEMS = 1 << 14
_WARM_UP_S = 0.5
_START_S = 120.0
_STOP_S = 120.0


@dataclass(frozen=True)
class SwitchRow:
    """One switch, build and number of workers."""

    switch: str
    """soft-udp, or bmv2: ``simple_switch_grpc`` on veth pairs."""
    values: int
    workers: int
    packets_per_second: float
    """That came in; median of the samples."""
    low_packets_per_second: float
    high_packets_per_second: float
    samples: int
    cpu_ns_per_packet: float | None
    """CPU time of the thread that moves packets, kernel included, by packet that came in."""
    cores_busy: float | None
    """Share of a core that this thread had."""
    gradient_gb_per_second: float
    """int32 values that came in."""
    wrong: int


def measure(
    values: int, workers: int, seconds: float, samples: int, *, multicast: bool
) -> SwitchRow:
    """A soft switch with one UDP port on loopback. Raises InaError, DeadlineError.

    ``multicast``: whether results go to all workers at once.
    """
    config = {"switch": {"multicast": USUAL_NETWORK if multicast else ""}}
    with Embedded(values=values, config=config) as embedded:
        switch = embedded.switch
        total_s = _WARM_UP_S + seconds * samples + 0.5
        with _workers(embedded.controller_addr, workers, _ELEMS, total_s) as processes:
            _await_packets(switch, processes, workers)
            time.sleep(_WARM_UP_S)
            moving = thread(SWITCH_THREAD)
            rates, costs, shares = [], [], []
            for _ in range(samples):
                before = switch.stats().rx_packets, cpu_ns(moving), time.perf_counter()
                time.sleep(seconds)
                packets = switch.stats().rx_packets - before[0]
                spent_ns, passed = cpu_ns(moving) - before[1], time.perf_counter() - before[2]
                if packets == 0:
                    raise InaError(f"bench switch: no packet came in {seconds:g} s")
                rates.append(packets / passed)
                costs.append(spent_ns / packets)
                shares.append(spent_ns / passed / 1e9)
            result = _finish(processes)
    found = spread(rates)
    return SwitchRow(
        switch="soft-udp",
        values=values,
        workers=workers,
        packets_per_second=found.median,
        low_packets_per_second=found.low,
        high_packets_per_second=found.high,
        samples=samples,
        cpu_ns_per_packet=spread(costs).median,
        cores_busy=spread(shares).median,
        gradient_gb_per_second=found.median * 4 * values / 1e9,
        wrong=result["wrong"],
    )


def why_not_bmv2() -> str:
    """Why BMv2 cannot be measured here; empty: it can."""
    return cannot_run_bmv2()


def measure_bmv2(values: int, workers: int, seconds: float) -> SwitchRow:
    """The same program on BMv2, in a star of namespaces without shaping. Needs root."""
    rates = dict.fromkeys(f"h{number}" for number in range(1, workers + 1))
    topology = star_topology(rates, "bmv2", {"switch": {"values": values}})
    with (
        TemporaryDirectory(prefix="ina-bench-") as folder,
        emulate(topology, Path(folder), lambda step: None) as emulation,
    ):
        done = job.run_job(
            emulation.state,
            emulation.state.hosts,
            [sys.executable, "-m", "ina.bench.host_worker", str(_BMV2_ELEMS), str(seconds)],
            timeout_s=_START_S + seconds + _STOP_S,
            on_text=lambda text: None,
            check=emulation.check,
        )
        record = total([Path(rank["log"]).read_text("utf-8", "replace") for rank in done["ranks"]])
    rate = record["packets"] / record["seconds"]
    return SwitchRow(
        switch="bmv2",
        values=values,
        workers=workers,
        packets_per_second=rate,
        low_packets_per_second=rate,
        high_packets_per_second=rate,
        samples=1,
        cpu_ns_per_packet=None,
        cores_busy=None,
        gradient_gb_per_second=rate * 4 * values / 1e9,
        wrong=record["wrong"],
    )


def ratios(rows: list[SwitchRow]) -> list[Ratio]:
    """The soft switch's packets a second over BMv2's, with as many workers."""
    bmv2 = {(row.values, row.workers): row for row in rows if row.switch == "bmv2"}
    return [
        Ratio(
            f"{row.values} values n={row.workers} soft/bmv2",
            row.packets_per_second / bmv2[row.values, row.workers].packets_per_second,
        )
        for row in rows
        if row.switch != "bmv2" and (row.values, row.workers) in bmv2
    ]


@contextlib.contextmanager
def _workers(
    controller: str, workers: int, elems: int, seconds: float
) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that keep the switch busy; none is left."""
    processes: list[subprocess.Popen[str]] = []
    try:
        for rank in range(workers):
            own = {"RANK": str(rank), "WORLD_SIZE": str(workers), "INA_CONTROLLER": controller}
            others = {k: v for k, v in os.environ.items() if not k.startswith("INA_")}
            processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "ina.bench.host_worker", str(elems), str(seconds)],
                    env={**others, **own},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    start_new_session=True,  # Ctrl-C reaches this process, which ends them
                )
            )
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.communicate(timeout=_STOP_S)


def _await_packets(switch: Any, processes: list[subprocess.Popen[str]], workers: int) -> None:
    deadline = time.monotonic() + _START_S
    while switch.stats().rx_packets < 1000 * workers:
        for process in processes:
            if process.poll() is not None:
                raise InaError(f"bench switch: a worker ended: {_said(process)}")
        if time.monotonic() >= deadline:
            raise DeadlineError(
                f"bench switch: {switch.stats().rx_packets} packets of {workers} workers after"
                f" {_START_S:g} s"
            )
        time.sleep(0.02)


def _finish(processes: list[subprocess.Popen[str]]) -> dict[str, Any]:
    try:
        said = [process.communicate(timeout=_STOP_S)[0] for process in processes]
    except subprocess.TimeoutExpired:
        late = [
            f"rank {rank} (process {process.pid})"
            for rank, process in enumerate(processes)
            if process.poll() is None
        ]
        raise DeadlineError(
            f"bench switch: not ended in {_STOP_S:g} s: {', '.join(late)}"
        ) from None
    for process in processes:
        if process.returncode:
            raise InaError(f"bench switch: a worker ended with exit code {process.returncode}")
    return total(said)


def total(said: Sequence[str]) -> dict[str, Any]:
    """What the ranks' output tells of all of them: packets, wrong values, seconds of the slowest.

    Raises InaError: a rank said nothing.
    """
    records = [_record(rank, text) for rank, text in enumerate(said)]
    return {
        "packets": sum(record["packets"] for record in records),
        "wrong": sum(record["wrong"] for record in records),
        "seconds": max(record["seconds"] for record in records),
    }


def _record(rank: int, text: str) -> dict[str, Any]:
    for line in text.splitlines():
        if line.startswith('{"packets"'):
            record: dict[str, Any] = json.loads(line)
            return record
    raise InaError(f"bench switch: rank {rank} said nothing")


def _said(process: subprocess.Popen[str]) -> str:
    lines = (process.communicate(timeout=_STOP_S)[1] or "").strip().splitlines()
    return lines[-1] if lines else f"exit code {process.returncode}"
