"""What it costs to sum RoCEv2's packets: beside UDP's, and beside a bare CRC, in one run.

Each packet's ICRC is verified, and each result gets its own. So a program can be as fast as that of
mode pool on a build of about as many values and twice a CRC of as many bytes; it is faster where
the copies of a result share the CRC of its values.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from ina.bench.bare_crc import CrcBench
from ina.bench.pipeline import Summing
from ina.bench.report import Ratio
from ina.bench.spread import spread
from ina.p4 import names
from ina.p4.builds import builds_of
from ina.protocol.bth import BTH_BYTES
from ina.protocol.icrc import ICRC_BYTES, ICRC_PREFIX
from ina.protocol.spec import HEADER_BYTES, VALUE_BYTES

_IP_UDP_BYTES = 20 + 8
_CRC_ROUNDS = 20


@dataclass(frozen=True)
class SendsRow:
    """One build that speaks RoCEv2; times are of CPU time of one core, a packet."""

    mode: str
    values: int
    workers: int
    ns_per_packet: float
    low_ns_per_packet: float
    high_ns_per_packet: float
    pool_values: int
    """Of the build of mode pool beside it, the nearest one; each worker gets a copy there, too."""
    pool_ns_per_packet: float
    crc_ns: float
    """The soft switch's own, of the bytes that an ICRC is over."""
    zlib_crc_ns: float
    limit_ns: float
    """Mode pool's time and twice the own CRC's."""
    of_limit: float
    """The limit over the time, the median of ratios of the same repeat: 1 or more is within it."""
    sums_checked: int
    wrong: int
    """Values that are no sums, and all those of results with another ICRC than theirs."""


def measure_sends(
    values: int, workers: int, *, mode: str, rounds: int = 60, repeats: int = 9
) -> SendsRow:
    """Both programs and both CRCs in turns, ``repeats`` times; the median counts.

    Raises InvalidInputError, WrongCrcError; as Target.load.
    """
    pool_values = min(builds_of(names.DEFAULT_MODE), key=lambda build: abs(build - values))
    covered = len(ICRC_PREFIX) + _IP_UDP_BYTES + BTH_BYTES + HEADER_BYTES + VALUE_BYTES * values
    times: list[tuple[float, float, float, float]] = []
    with contextlib.ExitStack() as stack:
        sends = stack.enter_context(Summing(values, workers, mode=mode))
        pool = stack.enter_context(Summing(pool_values, workers))
        crc = CrcBench(sends.batch.frames, covered, ICRC_BYTES)
        for _ in range(repeats + 1):
            roce_ns, udp_ns = sends.ns_per_packet(rounds), pool.ns_per_packet(rounds)
            cost = crc.measure(min(rounds, _CRC_ROUNDS))
            times.append((roce_ns, udp_ns, cost.ours_ns, cost.zlib_ns))
    own, beside, ours, theirs = (spread(list(each)) for each in zip(*times[1:], strict=True))
    return SendsRow(
        mode, values, workers, own.median, own.low, own.high, pool_values, beside.median,
        ours.median, theirs.median, beside.median + 2 * ours.median,
        spread([(udp + 2 * bare) / roce for roce, udp, bare, _ in times[1:]]).median,
        sends.checked + pool.checked, sends.wrong + pool.wrong,
    )  # fmt: skip


def ratios(rows: list[SendsRow]) -> list[Ratio]:
    """The limit over what was measured."""
    return [
        Ratio(f"mode {row.mode}, {row.values} values, n={row.workers} limit/pipeline", row.of_limit)
        for row in rows
    ]
