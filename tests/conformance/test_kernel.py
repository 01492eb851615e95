"""The soft switch and the kernel, on the same random packets: jobs of every kind of outcome, and
ordinary traffic by exact and longest-prefix entries, floods and defaults; counters, too."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ina.p4 import names
from ina.tables.values import AnyItem
from ina.testing.device import Device
from ina.testing.devices import open_device
from ina.testing.differential import EPISODE_PACKETS, Comparison
from ina.testing.soft_device import cannot_run_xdp
from tests.selection import LONG

PACKETS = 100_000 if LONG else 1_000
MODES = {names.POOL: "", names.SHARED: "_shared", names.STREAM: "_stream"}


@pytest.mark.parametrize(
    ("mode", "values"),
    [(names.POOL, 64), (names.SHARED, 64)]
    + (
        [(names.STREAM, 64), (names.POOL, 256), (names.POOL, 360), (names.SHARED, 256)]
        if LONG
        else []
    ),
)
def test_no_difference(mode: str, values: int, request: pytest.FixtureRequest) -> None:
    soft: Device = request.getfixturevalue(f"soft{MODES[mode]}")
    kernel: Device = request.getfixturevalue(f"xdp{MODES[mode]}")
    comparison = Comparison(soft, kernel, values, seed=29)
    for episode in range(-(-PACKETS // EPISODE_PACKETS)):
        finding = comparison.episode(episode, min(PACKETS, EPISODE_PACKETS))
        assert finding is None, finding.differences if finding else ""
    assert comparison.tally.packets == PACKETS
    assert comparison.tally.left > PACKETS // 10
    assert comparison.tally.counters > 100


@pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there")
def test_a_kernel_that_forgets_an_entry_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same traffic, where entries of the longest prefix are not written."""
    with open_device("soft") as soft, open_device("xdp") as kernel:
        insert = kernel.insert

        def some(items: Sequence[AnyItem]) -> None:
            insert([it for it in items if getattr(it, "table", "") != names.IPV4_LPM])

        monkeypatch.setattr(kernel, "insert", some)
        assert Comparison(soft, kernel, 64, seed=29).episode(0, 1_000) is not None
