"""Who waits for processes says for which."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ina.emulate import job, processes, waiting
from ina.errors import DeadlineError


def test_the_last_of_a_group_are_named_again_and_again(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 0.0
    watch = waiting.Waiting(clock=lambda: now_s)
    for now_s in range(101):
        watch.look(["rank 1"] if now_s > 9 else [], ["rank 0", "rank 2"] if now_s < 99 else [])
    assert caplog.messages == [
        f"waiting for rank 0, rank 2 to end: rank 1 ended {after_s} s ago"
        for after_s in (5, 15, 35, 75)
    ]


@pytest.mark.parametrize(
    ("said", "told"), [("step 3\nstep 4\n", "; rank 1 on h2 said last: step 4"), ("", "")]
)
def test_a_job_that_is_late_names_its_ranks_and_their_logs(
    said: str,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(processes, "within", lambda space, arguments: arguments)
    monkeypatch.setattr(waiting, "FIRST_S", 0.1)
    ranks = [
        processes.Logged(
            f"rank {rank} on h{rank + 1}",
            "",
            command,
            tmp_path / f"{rank}.log",
            processes.environment(),
        )
        for rank, command in enumerate((["true"], ["sleep", "600"]))
    ]
    ranks[1].log.write_text(said)
    try:
        tail = job._Tail(ranks[0].log, lambda text: None)
        with pytest.raises(DeadlineError) as late:
            job._await(ranks, time.monotonic() + 1, 1, tail, lambda: None)
    finally:
        for rank in ranks:
            rank.stop()
    log = tmp_path / "1.log"
    assert str(late.value) == f"not done after 1 s: rank 1 on h2 (see {log}){told}"
    assert caplog.messages[0].startswith("waiting for rank 1 on h2 to end: rank 0 on h1 ended ")
