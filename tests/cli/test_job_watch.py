"""``ina job watch``: events and stalls as they come; a controller that goes and comes."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable

import grpc
import pytest
from rich.console import Console

from ina.cli import main
from ina.cli.job import follow as job_follow
from ina.cli.job import watch as job_watch
from ina.errors import UnavailableError
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.operator import STALL, TRAIN, FakeController

DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_follow, "POLL_S", 0.05)
    monkeypatch.setattr(job_follow, "_PAUSE_S", 0.05)


def event(kind: pb2.EventKind, name: str = "train", **fields: object) -> pb2.JobEvent:
    return pb2.JobEvent(kind=kind, name=name, unix_s=1e9, **fields)  # type: ignore[arg-type]


def with_stall(missing: list[int]) -> pb2.Job:
    job = pb2.Job()
    job.CopyFrom(TRAIN)
    job.stall.CopyFrom(STALL)
    del job.stall.missing[:]
    job.stall.missing.extend(missing)
    return job


def until(condition: Callable[[], object]) -> None:
    """Waits for a thread of the test; the deadline is for a hang."""
    pause = threading.Event()
    for _ in range(int(DEADLINE_S / 0.02)):
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("it did not come to pass")


class Output:
    """All that was printed since it was made."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self._text = ""

    def all(self) -> str:
        self._text += self._capsys.readouterr().out
        return self._text

    def has(self, text: str) -> bool:
        return text in self.all()


def test_it_ends_with_the_named_job(
    fake: FakeController, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.events.put(event(pb2.JOB_ENDED, name="other"))
    fake.events.put(event(pb2.MEMBER_LOST, ranks=[2], reason="no heartbeat for 10 s", fatal=True))
    fake.events.put(event(pb2.JOB_ENDED))
    assert main.run(["job", "watch", "train", "--controller", address]) == 0
    assert fake.watched == ["train"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith("train  JOB_ENDED")
    assert "MEMBER_LOST  rank 2  no heartbeat for 10 s  (fatal)" in lines[-2]
    assert "512..1023" in "\n".join(lines)


def test_a_stall_whose_cause_changes_is_said_again(
    fake: FakeController, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.jobs = [with_stall([2])]
    command = ["job", "watch", "train", "--controller", address]
    watching = threading.Thread(target=main.run, args=(command,))
    watching.start()
    out = Output(capsys)
    until(lambda: out.has("stalled: rank 2 has not sent it"))
    fake.switch_state = "unreachable: 10.0.0.9:9559 does not answer"
    until(lambda: out.has("stalled: no result comes, and the controller does not reach the switch"))
    fake.events.put(event(pb2.JOB_ENDED))
    watching.join(DEADLINE_S)
    assert not watching.is_alive()


def test_json_is_a_document_a_line_and_says_when_the_missing_change(
    fake: FakeController, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.jobs = [with_stall([2])]
    command = ["job", "watch", "train", "--json", "--controller", address]
    watching = threading.Thread(target=main.run, args=(command,))
    watching.start()
    until(lambda: fake.watched)
    out = Output(capsys)
    until(lambda: out.has('"missing":[2]'))
    fake.jobs = [with_stall([1, 2])]
    until(lambda: out.has('"missing":[1,2]'))
    fake.jobs = [TRAIN]
    fake.events.put(event(pb2.JOB_RESUMED))
    fake.events.put(event(pb2.JOB_ENDED))
    watching.join(DEADLINE_S)
    assert not watching.is_alive()
    documents = [json.loads(line) for line in out.all().splitlines()]
    assert [next(iter(document)) for document in documents] == [
        "jobs", "stall", "stall", "event", "event",
    ]  # fmt: skip
    assert documents[1]["stall"]["slot"] == 723
    assert documents[3]["event"]["kind"] == "JOB_RESUMED"


def test_a_controller_that_comes_back_is_followed_again(
    fake: FakeController, address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["job", "watch", "train", "--controller", address]
    code: list[int] = []
    watching = threading.Thread(target=lambda: code.append(main.run(command)))
    watching.start()
    # Only who has had an answer waits for a controller that goes away.
    until(lambda: "512..1023" in capsys.readouterr().out)
    fake.refuse = (grpc.StatusCode.UNAVAILABLE, "standby: starting")
    fake.events.put(None)  # ends the stream
    until(lambda: "standby: starting" in capsys.readouterr().err)
    fake.refuse = None
    until(lambda: len(fake.watched) == 2)
    until(lambda: "the controller is back" in capsys.readouterr().err)
    fake.events.put(event(pb2.JOB_ENDED))
    watching.join(DEADLINE_S)
    assert code == [0]


def test_one_that_was_never_there_is_an_error() -> None:
    with pytest.raises(UnavailableError, match=r"controller 127\.0\.0\.1:1: "):
        next(job_follow.follow("127.0.0.1:1", ""))


def test_one_that_stays_away_is_an_error_after_a_while(
    fake: FakeController, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_follow, "AWAY_S", 0.2)
    following = job_follow.follow(address, "")
    seen = next(following)
    assert isinstance(seen, job_follow.Jobs)
    assert (seen.jobs, seen.switch_state(TRAIN)) == ([TRAIN], "connected")
    fake.refuse = (grpc.StatusCode.UNAVAILABLE, "standby: gone")
    fake.events.put(None)
    with pytest.raises(UnavailableError, match="standby: gone"):
        list(following)


def test_no_thread_is_left_when_nobody_looks_any_more(fake: FakeController, address: str) -> None:
    following = job_follow.follow(address, "")
    next(following)
    assert any(t.name == "ina-watch" for t in threading.enumerate())
    following.close()  # type: ignore[attr-defined]
    assert not any(t.name == "ina-watch" for t in threading.enumerate())


def test_it_stops_after_the_time_that_was_asked_for(
    address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["job", "watch", "--for", "0.2", "--controller", address]) == 0
    assert "train" in capsys.readouterr().out


def test_what_all_wait_for_may_be_the_switch(
    fake: FakeController,
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal = Console(file=(shown := io.StringIO()), force_terminal=True, width=200)
    fake.jobs = [with_stall([])]
    fake.switch_state = "unreachable: probe: no answer"
    command = ["job", "watch", "train", "--for", "0.2", "--controller", address]
    assert main.run(command) == 0
    monkeypatch.setattr(job_watch, "console", lambda: terminal)
    assert main.run(command) == 0
    for said in (capsys.readouterr().out, shown.getvalue()):
        assert "the controller does not reach the switch either (probe: no answer)" in said
        assert "all have sent it" not in said


def test_a_terminal_shows_a_table_that_is_kept_up_to_date(
    fake: FakeController, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = io.StringIO()
    terminal = Console(file=shown, force_terminal=True, width=200, highlight=False)
    monkeypatch.setattr(job_watch, "console", lambda: terminal)
    fake.jobs = [with_stall([2])]
    fake.jobs[0].traffic.CopyFrom(pb2.Traffic(packets_sent=4000, losses=100))
    fake.events.put(event(pb2.JOB_STALLED, ranks=[2]))
    fake.events.put(event(pb2.JOB_ENDED))
    job_watch.watch(address, "train", for_s=DEADLINE_S, json=False)
    assert "rank 2 has not sent it" in shown.getvalue()
    assert "JOB_STALLED  rank 2" in shown.getvalue()
    assert "100 (2.5%)" in shown.getvalue()
