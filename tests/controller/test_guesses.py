"""Guesses of join tokens are slowed down, and nobody who has the token is kept out."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.controller.service import access
from ina.controller.service.access import FIRST_PAUSE_S, FREE, MOST_PAUSE_S, Guesses
from tests.worlds.fakes.workers import is_clean, refusal
from tests.worlds.processes.controllers import controller

pytestmark = pytest.mark.usefixtures("quick_retries")


class Time:
    """That passes when it is told to."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.slept_s: list[float] = []

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, for_s: float) -> None:
        self.slept_s.append(for_s)

    def guesses(self) -> Guesses:
        return Guesses(self.clock, self.sleep)


def test_each_further_one_waits_twice_as_long_up_to_a_bound() -> None:
    time = Time()
    counted = time.guesses()
    for _ in range(9):
        asyncio.run(counted.wait("10.0.0.1", "vision"))
        counted.missed("10.0.0.1", "vision")
    pauses = [FIRST_PAUSE_S * 2**n for n in range(4)]
    assert time.slept_s[: len(pauses)] == pauses  # the first three cost nothing
    assert set(time.slept_s[len(pauses) :]) == {MOST_PAUSE_S}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("vst")), max_size=60))
def test_what_others_do_costs_nobody_anything(missed: list[tuple[str, str]]) -> None:
    """Another address, or another tenant at the same address."""
    counted = Time().guesses()
    for address, tenant in missed:
        counted.missed(address, tenant)
    for address in "abc":
        for tenant in "vst":
            own = missed.count((address, tenant))
            pause_s = counted.pause_s(address, tenant)
            assert (pause_s > 0) == (own >= FREE)
            assert pause_s <= MOST_PAUSE_S


def test_they_are_forgotten_with_time() -> None:
    time = Time()
    counted = time.guesses()
    for _ in range(1000):
        counted.missed("a", "v")
    time.now_s = 3600.0
    assert counted.pause_s("a", "v") == 0.0


def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "_KEYS", 10)
    counted = Time().guesses()
    for number in range(100):
        for _ in range(FREE):
            counted.missed(f"10.0.0.{number}", "v")
    slow = [n for n in range(100) if counted.pause_s(f"10.0.0.{n}", "v")]
    assert slow == list(range(90, 100))


def test_the_right_token_gets_in_beside_a_flood_of_wrong_ones(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "MOST_PAUSE_S", 0.5)
    with controller({}) as workers:
        workers.create("j", 2, token="open sesame")
        wrong = [workers.join("j", 0, token=f"guess {n}") for n in range(40)]
        workers.create("j", 2, token="open sesame")
        joins = [workers.join("j", rank, token="open sesame") for rank in range(2)]
        (epoch,) = {join.result().epoch for join in joins}
        for guess in wrong:
            with refusal(grpc.StatusCode.PERMISSION_DENIED, "created with another join token"):
                guess.result()
        running = "job 'j' was created with another join token"
        with refusal(grpc.StatusCode.PERMISSION_DENIED, running):
            workers.create("j", 2)
        with refusal(grpc.StatusCode.ALREADY_EXISTS, "the name 'j' is in use: it is running"):
            workers.create("j", 2, token="open sesame")
        for rank in range(2):
            workers.leave("j", rank, epoch)
        assert is_clean(workers)
    told = [it.getMessage() for it in caplog.records if "wrong join tokens" in it.getMessage()]
    assert told == [
        "127.0.0.1 shows wrong join tokens for jobs of tenant 'default': it is answered more"
        " slowly, by up to 0.5 s"
    ]


def test_another_token_waits_for_the_name_until_the_former_job_has_ended() -> None:
    """Each run of a script may have a token of its own."""
    with controller({}) as workers:
        workers.create("j", 1, token="first")
        epoch = workers.join("j", 0, token="first").result().epoch
        workers.leave("j", 0, epoch)
        workers.create("j", 1, token="second")
        epoch = workers.join("j", 0, token="second").result().epoch
        workers.leave("j", 0, epoch)
        assert is_clean(workers)
