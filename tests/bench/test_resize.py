"""``ina bench resize``: how a loss is told from a stream of sums; and once as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ina.bench import resize_worker
from ina.bench.resize import _measurement, look
from ina.bench.resize_worker import KINDS
from ina.bench.stream import Stream
from ina.errors import InaError
from ina.rpc import controller_pb2 as pb2
from tests.bench.command import bench
from tests.worlds.processes.command import inside
from tests.worlds.processes.emulations import need


@pytest.mark.parametrize("delays", ["500", pytest.param("0,3500", marks=pytest.mark.long)])
def test_a_job_whose_slots_change_has_exact_sums(delays: str) -> None:
    need("soft")
    case = (f"--round-trip-us={delays}", "--slots=64", "--size=8K", "--trials=1", "--json")
    ran = bench("resize", *case)
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert [(row["round_trip_us"], row["kind"], row["wrong"]) for row in document["rows"]] == [
        (int(delay), kind, 0) for delay in delays.split(",") for kind in KINDS
    ]
    for row in document["rows"]:
        assert row["in_place"] is (row["kind"] == "in place")
        assert row["round_trip_s"] > row["round_trip_us"] / 1e6
        assert row["lost_round_trips"] == pytest.approx(row["lost_s"] / row["round_trip_s"])
    assert ran.left == []
    assert ran.namespaces == []


def stream(pause_s: float, **more: Any) -> dict[str, Any]:
    """A sum each 4 ms, but for one that takes so much longer in the middle."""
    done_s = np.arange(500) * 0.004
    done_s[260:] += pause_s
    trial = {"kind": "move", "done_s": done_s.tolist(), "asked_s": 1.0, "changed_s": 1.1,
             "in_place": False, "round_trip_s": 0.002, "window": 128, "wrong": 1}  # fmt: skip
    return {**trial, **more}


@pytest.mark.parametrize("pause_s", [0.0, 0.0123, 0.15])
def test_what_is_lost_is_the_time_that_sums_took_longer(pause_s: float) -> None:
    found = look(stream(pause_s))
    assert found.lost_s == pytest.approx(pause_s, abs=1e-9)
    assert found.sum_s == pytest.approx(0.004)
    assert found.took_s == pytest.approx(0.1)


def test_trials_are_told_by_their_median() -> None:
    trials = [stream(pause_s) for pause_s in (0.01, 0.03, 0.02)]
    row = _measurement(1000, "move", trials)
    assert row.lost_s == pytest.approx(0.02)
    assert row.lost_round_trips == pytest.approx(10)
    assert (row.trials, row.wrong) == (3, 3)
    with pytest.raises(InaError, match="bench resize: move was in place"):
        _measurement(1000, "move", [stream(0.01, in_place=True)])


def test_too_few_sums_say_nothing() -> None:
    with pytest.raises(InaError, match="a smaller --size"):
        look(stream(0.0, done_s=[0.5, 1.05, 1.6, 1.7]))


def changing(stage: str) -> pb2.Job:
    """A job whose slots change in place."""
    return pb2.Job(slots=64, remapping=pb2.Remapping(stage=stage, in_place=True))


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([changing("asked")], "bench resize: asked after 0 s"),
        ([changing("asked"), pb2.Job(slots=64)], "bench resize: 64 slots, and 128 were asked for"),
        ([changing("asked"), changing("clearing"), pb2.Job(slots=128)], None),
    ],
)
def test_a_change_that_does_not_end_is_told(
    jobs: list[pb2.Job], said: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that ends with other slots."""
    answers = iter(jobs)
    monkeypatch.setattr(resize_worker, "resize", lambda *_: next(answers))
    monkeypatch.setattr(resize_worker, "show", lambda *_: pb2.ShowJobReply(job=next(answers)))
    monkeypatch.setattr(resize_worker, "_CHANGE_S", 0.0 if len(jobs) == 1 else 30.0)
    for pause in ("_CALM_S", "SETTLE_S", "_POLL_S"):
        monkeypatch.setattr(resize_worker, pause, 0.0)
    change = resize_worker.Resize("controller", "job", 128)
    change.start()
    change.join(30.0)
    assert (None if change.failed is None else str(change.failed)) == said
    assert change.in_place is (jobs[0].remapping.in_place)


@pytest.mark.parametrize("ends_after", [0, 1, 2, 7])
def test_all_ranks_submit_as_many_sums(ends_after: int) -> None:
    """Whenever rank 0 ends it, with four in flight."""
    words: list[int] = []
    zero = Stream(8, 0, 1, 4)
    left = iter([True] * ends_after)
    zero.run(Session(words.append), lambda: next(left, False))  # type: ignore[arg-type]
    assert words.index(0) == ends_after
    script = iter(words)
    one = Stream(8, 0, 1, 4)  # it gets the words that rank 0 sent
    one.run(Session(lambda word: None, lambda: next(script)), lambda: False)  # type: ignore[arg-type]
    assert len(one.sums) == len(zero.sums) == len(words)
    assert (zero.wrong, one.wrong) == (0, 0)


class Session:
    """Of one worker, whose sums are what it sends, or have another first word."""

    def __init__(
        self, heard: Callable[[int], object], says: Callable[[], int] | None = None
    ) -> None:
        self._heard, self._says = heard, says

    def all_reduce(self, own: Any, *, out: Any, async_op: bool) -> Any:
        assert async_op
        out[:] = own
        if self._says is not None:
            out[0] = self._says()
        self._heard(int(own[0]))
        return Done(out)


class Done:
    """A sum that is there."""

    def __init__(self, result: Any) -> None:
        self._result = result

    def wait(self) -> Any:
        return self._result


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--workers", "1"), "error: --workers 1: want 2 to 64"),
        (("--slots", "100"), "error: --slots 100: want a power of two, 64 to 1024"),
        (("--round-trip-us", "-1"), "error: --round-trip-us -1: want integers from 0 to 10000000"),
        (("--size", "1M,2M"), "error: --size 1M,2M: want one size"),
        (("--link", "fast"), "error: --link fast: want a rate"),
        (("--link", "loopback"), "error: --link loopback: want a rate"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = inside(capsys, "bench", "resize", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(message)
