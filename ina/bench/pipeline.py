"""How fast the compiled programs sum: packets in memory, one core, no sockets.

Times are the thread's CPU time, so that other processes on the machine do not count; what they take
of caches and memory bandwidth still does. What a call from Python and its clock cost is measured
without packets and taken off.
"""

from __future__ import annotations

import ctypes
import statistics
import time
from dataclasses import dataclass
from ipaddress import IPv4Address
from typing import Any

import numpy as np

from ina import modes
from ina.bench.pipeline_frames import (
    AROUND,
    CHUNKS,
    EPOCH,
    JOB,
    KEEPS,
    SWITCH_ADDR,
    Around,
    Batch,
    addr_of,
    mac_of,
)
from ina.bench.report import Ratio
from ina.errors import InvalidInputError
from ina.p4 import compiled, names
from ina.protocol.addresses import multicast_mac_of
from ina.protocol.spec import ALL_WORKERS, PARENT, UDP_PORT, USUAL_WIDTHS, Kind, path_mask
from ina.switch import native_abi as abi
from ina.switch.match import Exact
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target

GROUP, FIRST_SLOT = 1, 0
_RESULTS_GROUP = IPv4Address("239.192.0.1")


@dataclass(frozen=True)
class Result:
    """One build, measured in CPU time of one core; GB/s count the int32 values that came in."""

    values: int
    workers: int
    copies: int
    """Of each result: one a worker, ina's default, or one for all (IP multicast)."""
    mode: str
    """Of the program."""
    claims: bool
    """Whether the job claims slots that it shares; then each sum goes up, in one packet."""
    packets_per_second: float
    slowest_packets_per_second: float
    fastest_packets_per_second: float
    ns_per_packet: float
    gradient_gb_per_second: float
    numpy_gb_per_second: float
    """What NumPy adds of the same values, copying as many bytes."""
    of_numpy: float
    sums_checked: int
    wrong: int


def install(
    pipeline: Pipeline,
    workers: int,
    *,
    shared: bool = False,
    claims: bool = False,
    port: int | None = None,
    around: Around = AROUND["udp"],
) -> None:
    """One job of ``workers`` workers on ports 1..workers, or all of them on ``port``.

    ``shared``: one copy of each result goes to port 1 for all of them, by IP multicast. ``claims``:
    its slots are claimed, and its sums go up to an aggregator behind port 0.
    """
    full = (1 << workers) - 1
    pipeline.insert(names.OWN_ADDRESSES, [Exact(SWITCH_ADDR)], names.OURS, [])
    action, params = names.ADMIT_JOB, [EPOCH, FIRST_SLOT, CHUNKS, full, GROUP, 0]
    if claims:
        # Of 2 * CHUNKS slots there, CHUNKS are claimed here. Any slot is old: nobody frees one.
        own = [
            *(EPOCH, FIRST_SLOT, 2 * CHUNKS, full, GROUP, 0),
            *(0, 0, 1, path_mask(USUAL_WIDTHS[:2])),
        ]
        action, params = names.ADMIT_SHARED_JOB, [*own, *(CHUNKS - 1, CHUNKS, 0, 0)]
        up = [mac_of(workers), addr_of(workers), UDP_PORT, *KEEPS]
        pipeline.insert(names.RECEIVERS, [Exact(JOB), Exact(PARENT)], names.ADDRESS, up)
    pipeline.insert(names.JOBS, [Exact(JOB), Exact(EPOCH)], action, params)
    for worker in range(workers):
        at = worker + 1 if port is None else port
        sender = around.sender(worker)
        key = [at, addr_of(worker), sender, JOB, EPOCH, worker, Kind.CONTRIBUTION]
        admits = [1 << worker, *around.admits]
        pipeline.insert(names.MEMBERS, [Exact(k) for k in key], names.ADMIT_MEMBER, admits)
        _address(pipeline, worker, mac_of(worker), addr_of(worker), around)
    group_mac, group_addr = multicast_mac_of(_RESULTS_GROUP), int(_RESULTS_GROUP)
    _address(pipeline, ALL_WORKERS, group_mac, group_addr, around)
    each = [(worker + 1, worker + 1) for worker in range(workers)]
    pipeline.set_multicast(GROUP, [(1, ALL_WORKERS + 1)] if shared else each)


def _address(pipeline: Pipeline, worker: int, mac: int, addr: int, around: Around) -> None:
    more_key, says = around.receiver(worker)
    key = [Exact(part) for part in (JOB, worker, *more_key)]
    pipeline.insert(names.RECEIVERS, key, names.ADDRESS, [mac, addr, *says])


class Summing:
    """A loaded program with a job's packets in memory, measured as often as one likes.

    A context manager: the program goes at its end.
    """

    def __init__(
        self,
        values: int,
        workers: int,
        *,
        shared: bool = False,
        mode: str = names.DEFAULT_MODE,
        claims: bool = False,
    ) -> None:
        """As :func:`measure`, which see."""
        if not 1 <= workers <= 32:
            raise InvalidInputError(f"{workers} workers: 1 to 32 fit the bitmap of one level")
        self.copies = 1 if shared or claims else workers
        around = AROUND[modes.of(mode).framing]
        self.batch = Batch(values, workers, np.random.default_rng(1), around)
        self.checked = self.wrong = 0
        self._round = 1
        self._pipeline = default_target().load(compiled(values, mode).bmv2_json)
        install(self._pipeline, workers, shared=shared, claims=claims, around=around)
        most = self.batch.count + workers
        self._output = abi.OutputBuffer(
            most * (self.batch.frame_bytes + 256), most,
            share_tails=True,  # as the switch's UDP ports do
        )  # fmt: skip

    def __enter__(self) -> Summing:
        return self

    def __exit__(self, *_: object) -> None:
        self._pipeline.close()

    def ns_per_packet(self, rounds: int) -> float:
        """Of so many rounds. The last one's results are checked.

        Raises InvalidInputError: contributions give another number of results.
        """
        batch, output = self.batch, self._output
        address, state = self._pipeline.native
        table = abi.at(address)
        # The least: an interrupt in an empty call would make the packets' time too short.
        empty = min(_timed(table, state, batch, output, 0) for _ in range(rounds))
        elapsed = -rounds * empty
        for _ in range(rounds):
            batch.set_round(self._round)
            self._round += 1
            output.clear()
            output.set_depths({})
            elapsed += _timed(table, state, batch, output, batch.count)
            if output.struct.count != CHUNKS * self.copies:
                raise InvalidInputError(
                    f"{batch.count} contributions gave {output.struct.count} results, "
                    f"not {CHUNKS * self.copies}"
                )
        compared, differ = check(batch, output, self.copies)
        self.checked, self.wrong = self.checked + compared, self.wrong + differ
        return elapsed / (rounds * batch.count)


def measure(
    values: int,
    workers: int,
    *,
    shared: bool = False,
    mode: str = names.DEFAULT_MODE,
    claims: bool = False,
    rounds: int = 60,
    repeats: int = 9,
) -> Result:
    """Sum ``rounds`` batches ``repeats`` times; the median repeat counts.

    ``shared``: one copy of each result, and ``claims``, with the program of mode shared, as
    ``install`` says.
    """
    with Summing(values, workers, shared=shared, mode=mode, claims=claims) as summing:
        # The first one warms up.
        costs = [summing.ns_per_packet(rounds) for _ in range(repeats + 1)][1:]
    peer = numpy_gb_per_second(summing.batch, summing.copies, rounds)
    rates = [1e9 / cost for cost in costs]
    median = statistics.median(rates)
    gradients = median * 4 * values / 1e9
    return Result(
        values, workers, summing.copies, mode, claims, median, min(rates), max(rates), 1e9 / median,
        gradients, peer, gradients / peer, summing.checked, summing.wrong,
    )  # fmt: skip


def _timed(table: Any, state: int, batch: Batch, output: abi.OutputBuffer, count: int) -> int:
    """Nanoseconds of CPU time for the first ``count`` packets of a batch."""
    process, struct = table.process, ctypes.byref(output.struct)
    start = time.thread_time_ns()
    done = process(state, batch.packets, count, struct)
    elapsed = time.thread_time_ns() - start
    if done != count:
        raise InvalidInputError(f"the pipeline took {done} of {count} packets")
    return elapsed


def check(batch: Batch, output: abi.OutputBuffer, copies: int) -> tuple[int, int]:
    """Compare every result with the sums; how many values were compared, and how many differ, or
    are in frames that are wrong around them."""
    frames = np.frombuffer(b"".join(frame for _, frame in output.packets()), np.uint8)
    frames = frames.reshape(CHUNKS, copies, batch.frame_bytes)
    got = np.ascontiguousarray(batch.values_of(frames)).view(">i4")
    want = batch.gradients.sum(axis=1, dtype=np.int32)
    differ = int((got != want[:, None, :]).sum())
    return int(got.size), differ + batch.values * batch.around.wrong(frames)


def ratios(results: list[Result]) -> list[Ratio]:
    """The pipeline's speed over that of NumPy's vector loops on the same bytes."""
    return [Ratio(f"{_how(result)} pipeline/numpy", result.of_numpy) for result in results]


def _how(result: Result) -> str:
    one = (
        ", up" if result.claims else ", one copy for all" if result.copies < result.workers else ""
    )
    mode = "" if result.mode == names.DEFAULT_MODE else f"mode {result.mode}, "
    return f"{mode}{result.values} values, n={result.workers}{one}"


def numpy_gb_per_second(batch: Batch, copies: int, rounds: int) -> float:
    """The same sums by NumPy, its vector loops in this run: no packets, no lookups, no protocol.

    Every contribution is added once to an int32 accumulator. Of every result one frame is copied,
    and the headers of all further ones, as the pipeline writes them.
    """
    grads = np.ascontiguousarray(batch.gradients.transpose(1, 0, 2))
    sums = np.zeros((CHUNKS, batch.values), np.int32)
    frames = batch.frames[:, 0]
    heads = batch.frames[:, 1:copies, : batch.head_bytes]
    frames_out, heads_out = np.empty_like(frames), np.empty_like(heads)
    times = []
    for _ in range(rounds):
        start = time.thread_time_ns()
        for grad in grads:
            np.add(sums, grad, out=sums)
        np.copyto(frames_out, frames)
        np.copyto(heads_out, heads)
        times.append(time.thread_time_ns() - start)
    return grads.nbytes / statistics.median(times)
