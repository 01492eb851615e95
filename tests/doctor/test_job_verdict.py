"""One verdict for each thing that can keep a job, with the real fault, in every command."""

from __future__ import annotations

import json
import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import numpy as np
import pytest

from ina.cli import main
from ina.cli.common.rpc_client import ask, ask_about_itself
from ina.cli.job.view import known_of
from ina.controller.embedded import Embedded
from ina.doctor.job_verdict import Cause, Known, Verdict, judge
from ina.errors import InaError
from ina.host import Session, WorkerOptions
from ina.rpc import controller_pb2 as pb2

DEADLINE_S = 60.0  # for a hang
NAME = "train"
PATIENT = {"jobs": {"lease_s": 20}}
"""A job without its switch ends after a while; not while it is looked at."""
Capture = pytest.CaptureFixture[str]


def verdict(controller: str) -> Verdict:
    shown = ask(controller, lambda operator: operator.ShowJob, pb2.ShowJobRequest(name=NAME))
    return judge(known_of(shown, ask_about_itself(controller)), time.time())


def await_verdict(controller: str, cause: Cause) -> Verdict:
    """The verdict, once it is this; another one is an error after the deadline."""
    end_s = time.monotonic() + DEADLINE_S
    while (found := verdict(controller)).cause is not cause and time.monotonic() < end_s:
        time.sleep(0.1)
    assert found.cause is cause, found
    return found


@contextmanager
def pair(controller: str) -> Iterator[tuple[Session, Session]]:
    """Two ranks of the job, in this process, over UDP."""

    def join(rank: int) -> Session:
        return Session.join(controller, NAME, rank, 2, WorkerOptions(transport="udp"))

    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        first, second = pool.map(join, range(2))
        yield stack.enter_context(first), stack.enter_context(second)


def begin(*sessions: Session, elems: int = 64) -> None:
    """An operation that nobody waits for."""
    for session in sessions:
        session.all_reduce(np.ones(elems, np.int32), async_op=True)


@pytest.fixture(scope="module")
def well() -> Iterator[str]:
    """The controller of a switch that works."""
    with Embedded(values=64, config={"jobs": {"lease_s": 4}}) as embedded:
        yield embedded.controller_addr


def test_a_job_that_runs_or_ends_as_it_should_is_no_trouble(well: str, capsys: Capture) -> None:
    with pair(well) as (first, second):
        assert verdict(well) == Verdict(Cause.NONE, "it runs")
        second.close()
        left = await_verdict(well, Cause.LEAVING)
        assert (left.ok, left.found) == (True, "rank 1 has left, rank 0 not yet")
        assert main.run(["doctor", "--controller", well, "--job", NAME]) == 0
        assert "controller status" not in capsys.readouterr().out
        first.close()


def test_a_rank_that_has_not_joined(well: str) -> None:
    with ThreadPoolExecutor(1) as pool:
        lonely = pool.submit(Session.join, well, NAME, 1, 3, WorkerOptions(timeout_s=3))
        await_verdict(well, Cause.NOT_JOINED)
        found = verdict(well).found
        while found != "waits for ranks 0, 2 of 3 to join":
            assert not lonely.done(), found
            found = verdict(well).found
        with pytest.raises(InaError):
            lonely.result(DEADLINE_S)


def test_a_rank_that_thinks(well: str, capsys: Capture) -> None:
    with pair(well) as (first, second):
        begin(first)
        found = await_verdict(well, Cause.MISSING)
        assert "rank 1 (127.0.0.1:" in found.found
        assert re.search(r"has not sent it: slot \d+, sequence number 0, for ", found.found)
        assert main.run(["doctor", "--controller", well, "--job", NAME]) == 1
        assert "reduces nothing" in capsys.readouterr().out
        begin(second)


def test_a_rank_of_which_nothing_is_heard(well: str) -> None:
    with pair(well) as (first, second):
        begin(first)
        assert second._core.member is not None
        second._driver.run(second._core.member.stop())
        found = await_verdict(well, Cause.SILENT)
        assert "rank 1: no heartbeat for " in found.found
        assert "dead, stopped" in found.advice


def test_a_rank_that_has_left_too_early(well: str, capsys: Capture) -> None:
    with pair(well) as (first, second):
        begin(first)
        second.close()
        found = await_verdict(well, Cause.ENDED)
        assert "rank 1" in found.found
        assert "left" in found.found
        assert main.run(["doctor", "--controller", well, "--job", NAME]) == 1
        assert "controller status" not in capsys.readouterr().out


def test_ranks_that_reduce_different_sizes(well: str) -> None:
    with pair(well) as (first, second):
        begin(first, elems=640)
        begin(second, elems=1280)
        found = await_verdict(well, Cause.ENDED)
        assert "rank 0" in found.found
        assert "rank 1" in found.found


def test_packets_that_are_lost(capsys: Capture) -> None:
    with Embedded(values=64, loss_rate=0.999999) as embedded:
        controller = embedded.controller_addr
        with pair(controller) as sessions:
            begin(*sessions)
            found = await_verdict(controller, Cause.NO_RESULT)
            assert found.found.startswith("all have sent it, and no result comes: slot 0")
            assert "(ranks 0, 1)" in found.advice
            assert main.run(["doctor", "--controller", controller, "--json"]) == 1
            steps = {step["name"]: step for step in json.loads(capsys.readouterr().out)["path"]}
            assert steps["controller"]["ok"]
            assert "lost on the way there" in steps["small packets"]["found"]


def test_nobody_listens_at_the_switchs_address() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with Embedded(values=64, config={**PATIENT, "switch": {"data_udp_port": port}}) as embedded:
        controller = embedded.controller_addr
        with pair(controller) as sessions:
            begin(*sessions)
            found = await_verdict(controller, Cause.SWITCH_REFUSES)
            assert "nobody listens at the switch's address" in found.found
            assert "switch.data_udp_port" in found.advice


def test_a_switch_that_is_down_is_the_cause_in_every_command(capsys: Capture) -> None:
    with Embedded(values=64, config={**PATIENT, "switch": {"loss_s": 120}}) as embedded:
        controller = embedded.controller_addr
        with pair(controller) as sessions:
            embedded.switch.stop()
            begin(*sessions)
            found = await_verdict(controller, Cause.SWITCH_AWAY)
            address = embedded.switch.grpc_addr
            assert f"P4Runtime server at {address}" in found.advice
            for command in (
                ["job", "list"],
                ["job", "show", NAME],
                ["doctor", "--job", NAME],
                ["doctor"],
            ):
                main.run([*command, "--controller", controller])
                said = capsys.readouterr().out
                assert "does not reach" in said, command
                assert "packets are lost" not in said, command
                assert "ina controller run" not in said, command
            assert main.run(["doctor", "--controller", controller, "--json"]) == 1
            first, second = json.loads(capsys.readouterr().out)["path"]
            assert (first["name"], first["ok"]) == ("controller", True)
            assert (second["name"], second["ok"]) == ("switch", False)
            assert address in second["advice"]


@pytest.mark.parametrize(
    ("state", "joined", "cause", "words"),
    [
        ("joining", [0], Cause.NOT_JOINED, "rank 1 of 2 to join; nor does the controller reach"),
        ("starting", [0, 1], Cause.SWITCH_AWAY, "cannot start: the controller does not reach"),
        ("running", [0, 1], Cause.NONE, "it runs; the controller does not reach the switch"),
        ("leaving", [], Cause.SWITCH_AWAY, "its entries are removed once the controller reaches"),
    ],
)
def test_without_its_switch_each_state_has_its_own_words(
    state: str, joined: list[int], cause: Cause, words: str
) -> None:
    job = pb2.Job(name=NAME, state=state, world_size=2, joined=joined)
    found = judge(Known(job, switch_state="unreachable: it closed the stream"), 0.0)
    assert found.cause is cause
    assert words in found.found
    assert "it closed the stream" in found.found


def test_a_rank_that_left_is_named_also_while_the_job_is_still_there() -> None:
    stall = pb2.Stall(seq=7, slot=7, missing=[1], waiting=[0], since_unix_s=10)
    job = pb2.Job(name=NAME, state="leaving", world_size=2, joined=[0], stall=stall)
    found = judge(Known(job), 12.0)
    assert found.cause is Cause.LEFT
    assert found.found.startswith("rank 1 has left and not sent it: slot 7")
    assert "controller status" not in found.advice
