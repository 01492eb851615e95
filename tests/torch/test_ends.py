"""What closes does not wait for ever for its own threads."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from torch._C._distributed_c10d import HashStore

from ina.errors import UnavailableError
from ina.torch import deadlines
from ina.torch.deadlines import Deadlines
from ina.torch.fallback import fallback, sums
from ina.torch.fallback.fallback import Fallback
from ina.torch.fallback.sums import GlooSums
from tests.silence import stuck_thread


def test_of_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_END_TIMEOUT_S", 0.05)
    one = Deadlines("test")
    with stuck_thread() as stuck:
        one._thread = stuck
        one.close()


def test_of_sums_over_gloo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sums, "_END_TIMEOUT_S", 0.05)
    one = GlooSums(cast(Any, None), 2, "test")
    with stuck_thread() as stuck:
        own, one._thread = one._thread, stuck
        one.close(UnavailableError("it ends"))
    own.join(60)


def test_of_who_watches_for_the_loss_of_the_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fallback, "_END_TIMEOUT_S", 0.05)
    one = Fallback(HashStore(), 0, 1, timedelta(seconds=20), "test")
    with stuck_thread() as stuck:
        one._monitor = stuck
        one.close(0.0)
