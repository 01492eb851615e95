"""A signal in the middle of making a namespace waits until it is made."""

from __future__ import annotations

import signal

import pytest

from ina.emulate.namespaces import signals_later


def interrupted(done: list[str], *, fails: bool) -> None:
    with signals_later():
        signal.raise_signal(signal.SIGINT)
        if fails:
            raise ValueError
        done.append("block")


def test_a_signal_takes_effect_at_the_end_of_the_block() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(done, fails=False)
    assert done == ["block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_is_not_lost_when_the_block_fails() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted([], fails=True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
