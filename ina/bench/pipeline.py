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
import numpy.typing as npt

from ina.bench.report import Ratio
from ina.errors import InvalidInputError
from ina.p4 import compiled, names
from ina.protocol.addresses import multicast_mac_of
from ina.protocol.codec import Header, encode
from ina.protocol.spec import (
    ALL_WORKERS,
    FIELDS,
    HEADER_BYTES,
    PARENT,
    RESULTS_UDP_PORT,
    UDP_PORT,
    Kind,
    path_mask,
)
from ina.switch import native_abi as abi
from ina.switch.match import Exact
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target

JOB, EPOCH, GROUP, FIRST_SLOT = 1, 1, 1, 0
FRAME_HEADER_BYTES = 14 + 20 + 8  # Ethernet, IPv4, UDP
_LINE_BYTES = 64
_RESULTS_GROUP = IPv4Address("239.192.0.1")
CHUNKS = 128
"""Chunks in flight: the job's slots, and results of one batch."""

Bytes = npt.NDArray[np.uint8]


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


class Batch:
    """``workers`` contributions to each of CHUNKS chunks, packed as frames in one array."""

    def __init__(self, values: int, workers: int, rng: np.random.Generator) -> None:
        self.values, self.workers = values, workers
        self.frame_bytes = FRAME_HEADER_BYTES + HEADER_BYTES + 4 * values
        self.count = CHUNKS * workers
        bound = (2**31 - 1) // workers
        self.gradients = rng.integers(-bound, bound, (CHUNKS, workers, values), dtype=np.int32)
        self.frames = _frames(workers, self.frame_bytes)
        for worker in range(workers):
            self.frames[:, worker, : -4 * values] = np.frombuffer(self._head(worker), np.uint8)
        slots = np.arange(CHUNKS, dtype=">u2")
        self._field("slot", 2)[:] = slots[:, None].view(np.uint8).reshape(CHUNKS, 1, 2)
        wire = self.gradients.astype(">i4").view(np.uint8)
        self.frames[:, :, -4 * values :] = wire.reshape(CHUNKS, workers, 4 * values)
        self.packets = (abi.PacketIn * self.count)()
        base = self.frames.ctypes.data
        for number, packet in enumerate(self.packets):
            packet.data = base + number * self.frames.strides[1]
            packet.length = self.frame_bytes
            packet.port, packet.now_ns = number % workers + 1, 0

    def _field(self, name: str, size: int) -> Bytes:
        bits = 0
        for field in FIELDS:
            if field.name == name:
                break
            bits += field.bits
        first = FRAME_HEADER_BYTES + bits // 8
        return self.frames[:, :, first : first + size]

    def _head(self, worker: int) -> bytes:
        header = Header(job=JOB, epoch=EPOCH, worker=worker, value_count=self.values)
        payload = encode(header, np.zeros(self.values, np.int32))
        total = 20 + 8 + len(payload)
        ethernet = bytes.fromhex("0200000000ff") + _mac(worker).to_bytes(6, "big") + b"\x08\x00"
        ip = bytearray.fromhex("4502000000004000401100000000000000000000")
        ip[2:4] = total.to_bytes(2, "big")
        ip[12:16], ip[16:20] = _addr(worker).to_bytes(4, "big"), _SWITCH_ADDR.to_bytes(4, "big")
        words = sum(int.from_bytes(ip[i : i + 2], "big") for i in range(0, 20, 2))
        words = (words & 0xFFFF) + (words >> 16)
        ip[10:12] = (0xFFFF - ((words & 0xFFFF) + (words >> 16))).to_bytes(2, "big")
        udp = b"".join(n.to_bytes(2, "big") for n in (4000 + worker, UDP_PORT, 8 + len(payload), 0))
        return (ethernet + bytes(ip) + udp + payload)[: -4 * self.values]

    def set_round(self, number: int) -> None:
        """Sequence numbers of the next round."""
        seqs = (number * CHUNKS + np.arange(CHUNKS)).astype(">u4")
        self._field("seq", 4)[:] = seqs[:, None].view(np.uint8).reshape(CHUNKS, 1, 4)


def _frames(workers: int, frame_bytes: int) -> Bytes:
    """Memory for CHUNKS times ``workers`` frames, as the ports lay them: values on a cache line."""
    stride = -(-frame_bytes // _LINE_BYTES) * _LINE_BYTES
    memory = np.zeros(CHUNKS * workers * stride + _LINE_BYTES, np.uint8)
    first = -(memory.ctypes.data + FRAME_HEADER_BYTES + HEADER_BYTES) % _LINE_BYTES
    frames = memory[first : first + CHUNKS * workers * stride].reshape(CHUNKS, workers, stride)
    return frames[:, :, :frame_bytes]


_SWITCH_ADDR = 0x0A0000FF


def _addr(worker: int) -> int:
    return 0x0A000001 + worker


def _mac(worker: int) -> int:
    return 0x020000000001 + worker


def install(
    pipeline: Pipeline,
    workers: int,
    *,
    shared: bool = False,
    claims: bool = False,
    port: int | None = None,
) -> None:
    """One job of ``workers`` workers on ports 1..workers, or all of them on ``port``.

    ``shared``: one copy of each result goes to port 1 for all of them, by IP multicast. ``claims``:
    its slots are claimed, and its sums go up to an aggregator behind port 0.
    """
    full = (1 << workers) - 1
    pipeline.insert(names.OWN_ADDRESSES, [Exact(_SWITCH_ADDR)], names.OURS, [])
    action, params = names.ADMIT_JOB, [EPOCH, FIRST_SLOT, CHUNKS, full, GROUP, 0]
    if claims:
        # Of 2 * CHUNKS slots there, CHUNKS are claimed here. Any slot is old: nobody frees one.
        own = [*(EPOCH, FIRST_SLOT, 2 * CHUNKS, full, GROUP, 0), *(0, 0, 1, path_mask(1))]
        action, params = names.ADMIT_SHARED_JOB, [*own, *(CHUNKS - 1, CHUNKS, 0, 0)]
        up = [_mac(workers), _addr(workers), UDP_PORT]
        pipeline.insert(names.RECEIVERS, [Exact(JOB), Exact(PARENT)], names.ADDRESS, up)
    pipeline.insert(names.JOBS, [Exact(JOB), Exact(EPOCH)], action, params)
    for worker in range(workers):
        at = worker + 1 if port is None else port
        key = [at, _addr(worker), 4000 + worker, JOB, EPOCH, worker, Kind.CONTRIBUTION]
        pipeline.insert(names.MEMBERS, [Exact(k) for k in key], names.ADMIT_MEMBER, [1 << worker])
        pipeline.insert(
            names.RECEIVERS, [Exact(JOB), Exact(worker)], names.ADDRESS,
            [_mac(worker), _addr(worker), 4000 + worker],
        )  # fmt: skip
    pipeline.insert(
        names.RECEIVERS, [Exact(JOB), Exact(ALL_WORKERS)], names.ADDRESS,
        [multicast_mac_of(_RESULTS_GROUP), int(_RESULTS_GROUP), RESULTS_UDP_PORT],
    )  # fmt: skip
    each = [(worker + 1, worker + 1) for worker in range(workers)]
    pipeline.set_multicast(GROUP, [(1, ALL_WORKERS + 1)] if shared else each)


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
    if not 1 <= workers <= 32:
        raise InvalidInputError(f"{workers} workers: 1 to 32 fit the bitmap of one level")
    copies = 1 if shared or claims else workers
    rng = np.random.default_rng(1)
    batch = Batch(values, workers, rng)
    with default_target().load(compiled(values, mode).bmv2_json) as pipeline:
        install(pipeline, workers, shared=shared, claims=claims)
        output = abi.OutputBuffer(
            (batch.count + workers) * (batch.frame_bytes + 256), batch.count + workers,
            share_tails=True,  # as the switch's UDP ports do
        )  # fmt: skip
        address, state = pipeline.native
        table = abi.at(address)
        number, rates, checked, wrong = 1, [], 0, 0
        for repeat in range(repeats + 1):
            # The least: an interrupt in an empty call would make the packets' time too short.
            empty = min(_timed(table, state, batch, output, 0) for _ in range(rounds))
            elapsed = -rounds * empty
            for _ in range(rounds):
                batch.set_round(number)
                number += 1
                output.clear()
                output.set_depths({})
                elapsed += _timed(table, state, batch, output, batch.count)
                if output.struct.count != CHUNKS * copies:
                    raise InvalidInputError(
                        f"{batch.count} contributions gave {output.struct.count} results, "
                        f"not {CHUNKS * copies}"
                    )
            compared, differ = check(batch, output, copies)
            checked, wrong = checked + compared, wrong + differ
            if repeat:  # the first one warms up
                rates.append(rounds * batch.count / (elapsed * 1e-9))
    peer = numpy_gb_per_second(batch, copies, rounds)
    median = statistics.median(rates)
    gradients = median * 4 * values / 1e9
    return Result(
        values, workers, copies, mode, claims, median, min(rates), max(rates), 1e9 / median,
        gradients, peer, gradients / peer, checked, wrong,
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
    """Compare every result with the sums; how many values were compared, and how many differ."""
    frames = np.frombuffer(b"".join(frame for _, frame in output.packets()), np.uint8)
    frames = frames.reshape(CHUNKS, copies, batch.frame_bytes)
    got = np.ascontiguousarray(frames[:, :, -4 * batch.values :]).view(">i4")
    want = batch.gradients.sum(axis=1, dtype=np.int32)
    return int(got.size), int((got != want[:, None, :]).sum())


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
    heads = batch.frames[:, 1:copies, : -4 * batch.values]
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
