"""A WorkerCore that tests feed by hand: its configuration, and units of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from ina._native.host import RtoLimits, Tree, VerifyMode, WorkerConfig
from ina.protocol.codec import Header
from ina.protocol.spec import Kind

Array = NDArray[Any]

JOB = 7
EPOCH = 0x1_0003  # wider than the header's field
MS = 1_000_000
SECOND = 1_000_000_000


def worker_config(
    rank: int,
    world_size: int,
    slots: int,
    values: int,
    stall_s: float = 60.0,
    first_seq: int = 0,
    keep_results: bool = False,
    share: int = 0,
    shares: int = 1,
    verify: VerifyMode = VerifyMode.OFF,
    check_key: bytes = bytes(16),
    trees: Sequence[Tree] = (),
) -> WorkerConfig:
    """`share`, `shares`: of the lanes, in equal parts in a row."""
    lanes = (1 << max(slots.bit_length() - 2, 0)) // shares
    return WorkerConfig(
        job=JOB,
        epoch=EPOCH,
        rank=rank,
        world_size=world_size,
        slots=slots,
        values_per_packet=values,
        stall_timeout_ns=int(stall_s * SECOND),
        rto=RtoLimits(),
        first_seq=first_seq,
        keep_results=keep_results,
        trees=trees,
        first_lane=share * lanes,
        lanes=lanes,
        verify=verify,
        check_key=check_key,
    )


def result_of(sent: Header) -> Header:
    """What comes back where the other worker says the same."""
    digest = 2 * sent.digest % 2**16
    return replace(sent, kind=Kind.RESULT, contributors=0b11, digest=digest)
