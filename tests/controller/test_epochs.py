from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from ina.controller.jobs.numbers import CLOCK_START_UNIX_S, EpochCounter
from ina.protocol import serial


def resumed(mark: int | None, *, last: int = 0, **how: Any) -> EpochCounter:
    epochs = EpochCounter(last)
    epochs.resume(mark, **how)
    return epochs


@given(st.integers(0, 2**32 - 1), st.integers(1, 50))
@example(2**32 - 3, 4)
def test_epochs_only_grow_and_are_never_0(last: int, count: int) -> None:
    epochs = EpochCounter(last)
    for _ in range(count):
        epoch = epochs.next()
        assert epoch != 0
        assert serial.is_newer(epoch, last)
        last = epoch


def test_a_fresh_pipeline_starts_at_1() -> None:
    assert resumed(None, fresh=True).next() == 1


def test_the_mark_on_the_switch_outlives_the_controller() -> None:
    assert resumed(41, fresh=False).next() == 42


def test_without_a_mark_the_clock_gives_a_newer_epoch_than_an_empty_register() -> None:
    year_2090_unix_s = 3_786_912_000
    for now_unix_s in (CLOCK_START_UNIX_S + 1.5, year_2090_unix_s):
        epoch = resumed(None, fresh=False, now_unix_s=now_unix_s).next()
        assert serial.is_newer(epoch, 0)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**31 - 1), st.booleans())
def test_what_the_store_knows_is_never_issued_again(last: int, age: int, fresh: bool) -> None:
    for mark in (serial.add(last, -age), None):
        epochs = resumed(mark, last=last, fresh=True)
        assert serial.is_newer(epochs.next(), last)
    newer = serial.add(last, age)
    assert resumed(newer, last=last, fresh=fresh).last == newer
