"""Sizes, rates and lists of a command line; medians and quartiles; limits."""

from __future__ import annotations

import pytest

from ina.bench import limits, parse
from ina.bench.spread import percentile, spread
from ina.errors import InvalidInputError


def test_sizes_and_their_text() -> None:
    assert parse.sizes("--sizes", "64K, 1M,0.5M,100,2G") == [
        *(65536, 1 << 20, 1 << 19, 100, 2 << 30),
    ]
    assert [parse.size_text(size) for size in (65536, 1 << 20, 1000, 3 << 30)] == [
        *("64K", "1M", "1000", "3G"),
    ]


@pytest.mark.parametrize("text", ["", "x", "1T", "0", "-1", "64K,,1M", "5G", "1 M K"])
def test_wrong_sizes(text: str) -> None:
    with pytest.raises(InvalidInputError, match="--sizes"):
        parse.sizes("--sizes", text)


def test_rates() -> None:
    assert parse.rate_bit_s("--link", "1gbit") == 1e9
    assert parse.rate_bit_s("--link", "200mbit") == 2e8
    for wrong in ("1", "gbit", "0gbit", "1gbyte", "-1mbit", "1e9bit"):
        with pytest.raises(InvalidInputError, match="--link"):
            parse.rate_bit_s("--link", wrong)


def test_rates_keep_how_they_are_written() -> None:
    assert parse.rates_bit_s("--link", "1gbit, 200mbit") == {"1gbit": 1e9, "200mbit": 2e8}
    with pytest.raises(InvalidInputError, match="--link fast: want a rate"):
        parse.rates_bit_s("--link", "1gbit,fast")


def test_names_of_what_is_known() -> None:
    assert parse.names("--tcp", "reno, cubic,reno", ("cubic", "reno")) == ["reno", "cubic"]
    with pytest.raises(InvalidInputError, match="--tcp vegas: want some of cubic, reno"):
        parse.names("--tcp", "cubic,vegas", ("cubic", "reno"))


@pytest.mark.parametrize("text", ["", "a", "1", "2,33", "2,,4"])
def test_wrong_numbers_of_workers(text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"--workers.*2 to 32"):
        parse.workers("--workers", text)


def test_spread_of_few_and_of_many() -> None:
    few = spread([3.0, 1.0])
    assert (few.low, few.median, few.high, few.count) == (1.0, 2.0, 3.0, 2)
    many = spread([5, 1, 2, 4, 3])
    assert (many.low, many.median, many.high, many.width) == (2, 3, 4, 2)


def test_percentiles_are_samples() -> None:
    samples = list(range(1, 101))
    assert [percentile(samples, share) for share in (0.0, 0.5, 0.99, 1.0)] == [1, 50, 99, 100]
    assert percentile([7.0], 0.99) == 7.0


def test_wire_limits_by_hand() -> None:
    # 1000 values: 4 packets of at most 256; 74 bytes of headers each (14 + 20 + 8 + 32).
    assert limits.ina_wire_bytes(1000, 256) == 4000 + 4 * 74
    # A ring of 4 sends 1.5 tensors; each 1448 bytes have 66 of headers.
    assert limits.ring_wire_bytes(1448, 4) == pytest.approx(1.5 * 1514)
    assert limits.link_s(125, 1000) == 1.0
