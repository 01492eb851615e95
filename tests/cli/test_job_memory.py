"""``ina job history`` and ``ina job plan``, and the queue, with a controller and real sessions."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ina.cli import main
from ina.controller.embedded import Embedded
from ina.host import ControllerError, Session, Wishes, WorkerOptions

Capture = pytest.CaptureFixture[str]
JOBS = {"jobs": {"policy": "equal", "floor": 4096, "slots": 4096}}
"""Of 8192 slots: two jobs have room."""


@pytest.fixture
def address() -> Iterator[str]:
    with Embedded(values=64, config=JOBS) as embedded:
        yield embedded.controller_addr


def asked(capsys: Capture, address: str, *words: str) -> Any:
    assert main.run(["job", *words, "--controller", address, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def wait_until_told(capsys: Capture, address: str, job: str, what: str) -> dict[str, Any]:
    for _ in range(500):
        for decision in asked(capsys, address, "history", job)["decisions"]:
            if decision["what"] == what:
                return dict(decision)
        time.sleep(0.02)
    raise AssertionError(f"nothing was told of {job}")


def test_who_waits_gets_its_slots_when_another_leaves(address: str, capsys: Capture) -> None:
    first, second = (Session.join(address, name, 0, 1) for name in ("first", "second"))
    joined: list[Session] = []

    def join() -> None:
        wishes = Wishes(queue_s=60.0)
        joined.append(
            Session.join(address, "third", 0, 1, WorkerOptions(timeout_s=3.0, wishes=wishes))
        )

    with first, second:
        thread = threading.Thread(target=join)
        thread.start()
        waits = wait_until_told(capsys, address, "third", "wait")
        assert "no 4096 free ones are side by side (8192 of 8192 are in use)" in waits["reason"]
        with pytest.raises(ControllerError, match=r"1 job waits for slots before it, .*'third'"):
            Session.join(address, "fourth", 0, 1, WorkerOptions(timeout_s=5.0))
        plan = asked(capsys, address, "plan", "--workers", "2")
        assert (plan["policy"], plan.get("slots", 0)) == ("equal", 0)
        assert "jobs that run keep their floors, and 0 slots are free" in plan["refusal"]
        time.sleep(3.3)  # its first call has ended, and it has asked again
        first.close()
        thread.join(30.0)
        (third,) = joined
        with third:
            ones = third.all_reduce(np.ones(10, np.int32))
        assert ones.tolist() == [1] * 10
    history = asked(capsys, address, "history", "third")
    assert history["policy"] == "equal"
    assert [it["what"] for it in history["decisions"]] == ["wait", "grant"]
    assert history["decisions"][1]["slots"] == 4096
    refused = asked(capsys, address, "history", "fourth")["decisions"]
    assert [it["what"] for it in refused] == ["refuse"]
    assert main.run(["job", "history", "--controller", address]) == 0
    shown = capsys.readouterr().out
    for part in ("policy equal", "third", "grant", "4096"):
        assert part in shown


def test_a_plan_says_slots_and_what_steps_take_with_them(address: str, capsys: Capture) -> None:
    words = ("plan", "--workers", "4", "--bytes", "100M", "--compute", "0.05", "--link", "100")
    plan = asked(capsys, address, *words)
    # 256 bytes a packet and 50 us: 4096 slots carry 10.5 GB/s, 8192 the link's 12.5.
    assert (plan["slots"], plan["useful_slots"]) == (4096, 4096)
    assert plan["step_s"] == pytest.approx(0.05)
    assert plan["step_without_s"] == pytest.approx(0.05)
    plan = asked(capsys, address, *words, "--overlap", "0", "--slots", "2048")
    assert plan["slots"] == 2048
    assert plan["step_s"] == pytest.approx(0.05 + 100e6 / (1024 * 256 / 50e-6))
    assert plan["step_without_s"] == pytest.approx(0.05 + 1.5 * 100e6 / 12.5e9)
    assert main.run(["job", *words, "--controller", address]) == 0
    shown = capsys.readouterr().out
    assert "policy equal: 4096 slots" in shown
    assert "4096 slots are of use to it: a step takes 50 ms with all of them" in shown
    assert asked(capsys, address, "list") == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("plan", "--workers", "2", "--bytes", "much"), "--bytes much: want bytes, as 250000"),
        (("plan", "--workers", "2", "--deadline", "soon"), "--deadline 'soon' is neither seconds"),
        (("plan", "--workers", "2", "--like", "nobody"), "no job is called 'nobody'"),
        (("plan", "--workers", "2", "--slots", "3"), "3 slots: not an even number"),
    ],
)
def test_what_cannot_be_planned_is_said_in_a_line(
    address: str, capsys: Capture, words: tuple[str, ...], message: str
) -> None:
    assert main.run(["job", *words, "--controller", address]) == 2
    error = capsys.readouterr().err
    assert message in " ".join(error.split())
