"""Ranks that find an earlier attempt's or group's store agree on a part of it that is theirs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from torch._C._distributed_c10d import HashStore, Store

from ina.torch import fresh_store
from ina.torch.env import Settings
from ina.torch.errors import RendezvousError
from ina.torch.fresh_store import fresh
from ina.torch.rendezvous import meet

_LIMIT = timedelta(seconds=20)


def attempt(store: Store, size: int, order: list[int]) -> list[Store]:
    """Ranks come in that order; by rank."""
    with ThreadPoolExecutor(size) as pool:
        ranks = {rank: pool.submit(fresh, store, rank, size, _LIMIT) for rank in order}
        return [ranks[rank].result(30) for rank in range(size)]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_each_attempt_has_a_part_of_its_own(order: list[int]) -> None:
    store = HashStore()
    for number in range(3):
        parts = attempt(store, 3, order)
        assert not any(part.check(["address"]) for part in parts)
        parts[1].set("address", str(number))
        assert {part.get("address") for part in parts} == {str(number).encode()}


def test_attempt_that_was_killed_in_the_middle_does_no_harm() -> None:
    store = HashStore()
    with pytest.raises(RendezvousError, match=r"ranks 1, 2 did not come within 0\.05 s"):
        fresh(store, 0, 3, timedelta(seconds=0.05))
    with pytest.raises(RendezvousError, match=r"rank 0 did not come within 0\.05 s"):
        fresh(store, 2, 3, timedelta(seconds=0.05))
    parts = attempt(store, 3, [1, 0, 2])
    parts[0].set("address", "x")
    assert all(part.check(["address"]) for part in parts)


def test_who_waits_says_for_whom_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fresh_store, "_FIRST_WORD_S", 0.02)
    with pytest.raises(RendezvousError):
        fresh(HashStore(), 0, 3, timedelta(seconds=0.4), "7")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 3  # after 0.02, 0.08, 0.26 s
    assert set(said) == {
        "ina: rank 0 of group 7 waits for ranks 1, 2 to make the group: 0 s so far, at most 0 s"
    }


def test_who_waits_for_the_controllers_name_says_so_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(fresh_store, "_FIRST_WORD_S", 0.02)
    with pytest.raises(RendezvousError, match=r"^rank 0 named no controller within 0\.06 s$"):
        meet(HashStore(), [0, 1], 1, "", Settings(), 0.06)
    assert [record.getMessage() for record in caplog.records] == [
        "ina: rank 1 of the default group waits for rank 0 to make the group: 0 s so far, at most"
        " 0 s"
    ]
