"""What operators see of jobs that share slots, and the aggregator that they may run for them."""

from __future__ import annotations

import io
import json
import signal

import pytest
from rich.console import Console

from ina.cli import main
from ina.cli.common.trees import summed_where
from ina.cli.fabric.view import view as fabric_view
from ina.cli.job.view import job_view
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.operator import TRAIN, FakeController
from tests.worlds.processes.forks import start_ina

Capture = pytest.CaptureFixture[str]


def tree(**switch: int) -> list[pb2.TreeNode]:
    """An aggregator above one switch, which has counted this."""
    root = pb2.TreeNode(
        switch="agg",
        level=2,
        children=["tor"],
        slots=64,
        contributions=40,
        duplicates=2,
        results=30,
    )
    below = pb2.TreeNode(
        switch="tor", parent="agg", level=1, ranks=[0, 1], first_slot=4096, slots=8, shared=True
    )
    for name, count in switch.items():
        setattr(below, name, count)
    return [root, below]


def test_it_is_said_how_much_switches_summed_and_why_not_the_rest() -> None:
    shown = summed_where(tree(contributions=45, collisions=9, bypassed=3, late=2, missed=1))
    assert shown == (
        "switches summed 75.0% of 60 contributions; alone went up 9 collisions, 3 bypassed, 2 late,"
        " 1 missed; the aggregator got 42 packets for 30 sums"
    )


def test_nothing_is_said_of_other_jobs_or_without_counters() -> None:
    assert summed_where(tree()) == ""
    nodes = tree(contributions=4)
    nodes[1].unread = "it is away"
    assert summed_where(nodes) == ""
    nodes = tree(contributions=4)
    nodes[1].shared = False
    assert summed_where(nodes) == ""
    nodes = tree(contributions=4)
    nodes[0].unread = "rank 0, which runs it, has not said"
    assert summed_where(nodes).endswith(
        "; alone went up 0 collisions, 0 bypassed, 0 late, 0 missed"
    )


def test_it_is_said_why_collectives_go_beside_the_network() -> None:
    job = pb2.Job(
        name="j", state="running", world_size=4, lacks_shapes="mode 'roce' has sums alone"
    )
    shown = pb2.FabricJob(name="j", state="running", lacks_shapes=job.lacks_shapes)
    out = io.StringIO()
    for view in (
        job_view(pb2.ShowJobReply(job=job), 1e9),
        fabric_view(pb2.ShowFabricReply(jobs=[shown])),
    ):
        Console(file=out, width=200).print(view)
    said = "collectives that are no sums go beside the network: mode 'roce' has sums alone"
    assert out.getvalue().count(said) == 2


def test_of_levels_the_lowest_says_what_was_summed() -> None:
    root, below = tree(contributions=8, late=2)
    root.children[:] = ["spine"]
    spine = pb2.TreeNode(
        switch="spine", parent="agg", level=2, children=["tor"], shared=True, contributions=99
    )
    assert summed_where([root, spine, below]).startswith("switches summed 80.0% of 10")


def test_a_job_is_shown_with_the_slots_that_it_may_claim() -> None:
    nodes = tree(contributions=45, collisions=9, flushes=7, evictions=5)
    reply = pb2.ShowJobReply(job=TRAIN, tree=nodes)
    out = io.StringIO()
    Console(file=out, width=200).print(job_view(reply, 1e9))
    lines = [line.split() for line in out.getvalue().splitlines()]
    title = next(line for line in lines if line[:1] == ["switch"])
    assert title[-6:] == ["flushes", "evictions", "collisions", "bypassed", "late", "missed"]
    row = next(line for line in lines if line[:1] == ["tor"])
    assert row[1:6] == ["ranks", "0,", "1", "4096..4103", "shared"]
    assert row[-6:] == ["7", "5", "9", "0", "0", "0"]
    assert "switches summed 83.3% of 54 contributions" in out.getvalue()


def test_a_switch_says_which_of_its_slots_who_may_claim(
    fake: FakeController, address: str, capsys: Capture
) -> None:
    fake.holds = [pb2.SlotHold(job="train", first_slot=4096, slots=8, shared=True)]
    assert main.run(["switch", "show", "--controller", address]) == 0
    shown = capsys.readouterr().out
    assert "in use, the last 4096 of them shared" in shown
    assert "may claim slots 4096..4103" in shown


@pytest.mark.parametrize("listen", ["17760", "host:x", "127.0.0.1:70000", "nowhere:1"])
def test_an_aggregator_wants_an_address(listen: str, capsys: Capture) -> None:
    assert main.run(["aggregator", "--listen", listen, "--grpc-addr", "127.0.0.1:0"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1


def test_an_aggregator_says_where_it_is_until_it_is_told_to_stop() -> None:
    command = start_ina(
        *("aggregator", "--listen", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--json"),
        environ={},
    )
    try:
        ready = json.loads(command.first_line(60.0))
        assert ready["ports"]["1"].startswith("udp:127.0.0.1:")
    finally:
        command.signal(signal.SIGTERM)
        assert command.end(10.0) == 143
