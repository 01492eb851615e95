"""One worker's core, fed by hand, and the time passed in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ina._native.congestion import Choice
from ina._native.host import WorkerCore
from ina.protocol.codec import Header, decode, encode
from ina.protocol.collective import Collective
from ina.protocol.spec import Flag, Kind, path_of
from tests.worlds.virtual.cores import worker_config

SLOTS, VALUES = 128, 8
W = SLOTS // 2
DATA = np.arange(60 * W * VALUES, dtype=np.int32)
OUT = np.empty_like(DATA)


def worker(chunks: int, stall_s: float = 60.0) -> WorkerCore:
    assert chunks * VALUES <= DATA.size
    # One that sends as results come: here time goes by in steps that a pace would not fit into.
    core = WorkerCore(worker_config(0, 2, SLOTS, VALUES, stall_s), congestion=Choice("fixed"))
    core.submit(1, DATA.ctypes.data, OUT.ctypes.data, Collective(0, chunks * VALUES), 0)
    return core


def headers(packets: list[bytes]) -> list[Header]:
    return [decode(packet)[0] for packet in packets]


def sent_at(core: WorkerCore, now_ns: int) -> list[Header]:
    sent: list[Header] = []
    while packets := core.poll_transmit(now_ns):
        sent += headers(packets)
    return sent


def answer(core: WorkerCore, header: Header, now_ns: int, *, others_loss: bool = False) -> None:
    """`others_loss`: the other worker's second copy completed the sum."""
    result = replace(header, kind=Kind.RESULT, flags=Flag(0), contributors=0b11, worker=0)
    if others_loss:
        result = replace(result, path=path_of([1]), copy=1)
    result = replace(result, digest=2 * header.digest % 2**16)
    core.on_result(encode(result, np.zeros(header.value_count, np.int32)), now_ns)
