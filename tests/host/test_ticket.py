"""What a ticket says of the sums: who is in them, how many, by what an average is divided."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from ina._native.host import RtoLimits, WorkerCore
from ina.host.arrays import VALUE_TYPES
from ina.host.errors import InvalidTicketError
from ina.protocol.codec import decode, encode
from ina.protocol.collective import Collective, Reduction
from ina.protocol.spec import Kind
from tests.worlds.fakes.tickets import direct_ticket

TICKET = direct_ticket("j", 1, 1, 1, 3, 64, 64, "127.0.0.1", 17760)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epoch": 1 << 32}, r"epoch is 4294967296, must be 0\.\.4294967295"),
        ({"slots": 1}, r"slots is 1, must be 2\.\.65536"),
        ({"mode": "sparse"}, "mode 'sparse'; workers speak pool and shared"),
        ({"mode": "stream"}, "its trees have owners, and mode 'stream' sums alone"),
        ({"trees": ()}, "0 trees, 1 to 16 are dealt lanes"),
    ],
)
def test_what_cannot_be(change: dict[str, int], says: str) -> None:
    with pytest.raises(InvalidTicketError, match=says):
        replace(TICKET, **cast(Any, change))


def test_its_job_and_its_switch_are_those_of_its_first_tree() -> None:
    assert (TICKET.job, TICKET.switch.place) == (1, ("127.0.0.1", 17760))
    config = TICKET.worker_config(stall_timeout_ns=1, rto=RtoLimits(), keep_results=False)
    assert (config.job, config.expected_bitmap) == (1, 0b111)
    assert (config.summands, config.divisor) == (3, 3)


def test_a_whole_sum_is_what_the_bitmap_and_the_summands_say() -> None:
    """Twelve summands in the packets of ranks 1 and 2: as where switches sum what others summed."""
    (tree,) = TICKET.trees
    ticket = replace(TICKET, trees=(replace(tree, expected_bitmap=0b110),))
    config = ticket.worker_config(stall_timeout_ns=10**12, rto=RtoLimits(), keep_results=False)
    config.summands, config.divisor = 12, 24
    core = WorkerCore(config)
    ours, out = np.full(64, 1.5, np.float32), np.zeros(64, np.float32)
    value_type = VALUE_TYPES[ours.dtype]
    core.submit(
        1,
        ours.ctypes.data,
        out.ctypes.data,
        Collective(value_type, ours.size, Reduction.AVERAGE),
        0,
    )

    def result(contributors: int, summands: int) -> bytes:
        digest = header.digest * summands & 0xFFFF
        whole = replace(header, kind=Kind.RESULT, contributors=contributors, digest=digest)
        return encode(whole, values * 12)

    for _ in ("exponent", "values"):
        header, values = decode(*core.poll_transmit(0))
        mismatched = core.counters.mismatched
        for contributors in (0b010, 0b111, 0b100):
            core.on_result(result(contributors, 12), 0)
        assert core.counters.mismatched == mismatched + 3
        core.on_result(result(0b110, 12), 0)
        assert core.mismatch is None
    assert core.take_completions() == [1]
    # The scale leaves room for twelve: no sum of as many values as large as ours overflows.
    assert abs(int(values[0])) * 12 < 2**31 <= abs(int(values[0])) * 12 * 4
    assert np.allclose(out, 1.5 * 12 / 24)

    core.submit(
        2,
        ours.ctypes.data,
        out.ctypes.data,
        Collective(value_type, ours.size, Reduction.AVERAGE),
        0,
    )
    header, values = decode(*core.poll_transmit(0))
    core.on_result(result(0b110, 3), 0)
    assert core.mismatch is not None
