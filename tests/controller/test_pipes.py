"""Whatever adds to a node's sums, workers and switches, must enter by one pipe of a Tofino."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from ina.controller.config.tofino import pipe_of
from ina.controller.errors import JobPipesError
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.placement import check_pipes
from ina.controller.memory import FirstFit
from ina.controller.switches.capacity import Capacity, PipeOf, one_pipe
from ina.protocol.peer import Peer
from ina.trees.endpoint import Endpoint
from ina.trees.forest import forest_of
from ina.trees.tree import Node, Tree

PIPE_0, PIPE_1 = 4, 130  # device ports


def check(
    worker_ports: tuple[int, ...], switch_ports: tuple[int, ...], pipe: PipeOf = pipe_of
) -> None:
    """Of a node with these children; its parent is behind the other pipe."""
    job = Job(JobSpec("j", len(worker_ports)), 1, 0.0)
    for rank, port in enumerate(worker_ports):
        job.members[rank] = Endpoint(Peer(IPv4Address("10.0.0.1"), 4000 + rank), port)
    names = tuple(f"leaf{number}" for number in range(len(switch_ports)))
    ranks = tuple(range(len(worker_ports)))
    node = Node("middle", ranks, names, switch_ports, parent="spine", parent_port=PIPE_1)
    spine = Node("spine", nodes=("middle",), ports=(PIPE_1,))
    leaves = (Node(name, parent="middle") for name in names)
    capacity = Capacity(FirstFit(8, 8), pipe_of=pipe)
    forest = forest_of(Tree((spine, node, *leaves)))
    check_pipes(job, forest, dict.fromkeys(forest.switches, capacity))


@pytest.mark.parametrize(
    ("worker_ports", "switch_ports"),
    [((PIPE_0, 5), ()), ((), (PIPE_0, 5)), ((PIPE_0,), (5, 6)), ((), (PIPE_1,))],
)
def test_children_of_one_pipe(worker_ports: tuple[int, ...], switch_ports: tuple[int, ...]) -> None:
    check(worker_ports, switch_ports)


@pytest.mark.parametrize(
    ("worker_ports", "switch_ports", "says"),
    [
        ((PIPE_0, PIPE_1), (), "rank 0 behind port 4 (pipe 0), rank 1 behind port 130 (pipe 1)"),
        (
            (),
            (PIPE_0, PIPE_1),
            "switch leaf0 behind port 4 (pipe 0), switch leaf1 behind port 130 (pipe 1)",
        ),
        (
            (PIPE_0,),
            (PIPE_1,),
            "rank 0 behind port 4 (pipe 0), switch leaf0 behind port 130 (pipe 1)",
        ),
    ],
)
def test_children_of_two_pipes(
    worker_ports: tuple[int, ...], switch_ports: tuple[int, ...], says: str
) -> None:
    with pytest.raises(JobPipesError) as refused:
        check(worker_ports, switch_ports)
    assert says in str(refused.value)


def test_switches_without_pipes_take_children_anywhere() -> None:
    check((PIPE_0, PIPE_1), (PIPE_1, 300), one_pipe)
