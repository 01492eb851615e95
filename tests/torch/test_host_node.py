"""Hosts of several ranks: what a node of each adds up, over real soft switches and shared memory.

One machine stands for several hosts: each has its loopback address, and ranks of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
import uuid
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch._C._distributed_c10d import HashStore

from ina import netns
from ina.host import Session
from ina.host.errors import OperationTimeoutError
from ina.host.shm import ShmLink
from ina.netns import End
from ina.rpc import controller_pb2 as pb2
from ina.switch.server import SoftSwitch
from ina.testing import numerics
from ina.torch import host_node
from ina.torch.env import Settings
from ina.torch.errors import SettingError
from ina.torch.host_node import LocalNode
from tests.torch import group_cases
from tests.torch.host_group import HOSTS, Group
from tests.worlds.processes.launch import finish, outcome, start
from tests.worlds.processes.namespaces import require_root
from tests.worlds.processes.runs import wait_until
from tests.worlds.processes.two_racks import TIMEOUT_S, ask, two_racks


def tree_of(reply: pb2.ShowFabricReply) -> dict[str, pb2.TreeNode]:
    """Its nodes by name."""
    (job,) = reply.jobs
    return {node.switch: node for node in job.nodes}


async def test_each_host_sends_one_contribution_and_all_get_the_same_bits() -> None:
    rng = np.random.default_rng(23)
    parts = rng.integers(-(1 << 20), 1 << 20, (len(HOSTS), 5000), np.int32)
    floats = rng.normal(size=(len(HOSTS), 700)).astype(np.float32)
    shown: list[pb2.ShowFabricReply] = []
    async with two_racks() as (app, _):
        loop = asyncio.get_running_loop()

        def work(session: Session, rank: int) -> tuple[bool, bytes, str]:
            equal = bool((session.all_reduce(parts[rank]) == parts.sum(0, np.int32)).all())
            if rank == 0:
                shown.append(asyncio.run_coroutine_threadsafe(ask(app), loop).result(TIMEOUT_S))
            return equal, session.all_reduce(floats[rank]).tobytes(), session.path

        answers = await Group(HOSTS).together(app, work)
        assert not (await ask(app)).jobs
    assert all(isinstance(answer, tuple) for answer in answers), answers
    oks, sums, paths = zip(*answers, strict=True)
    assert oks == (True,) * len(HOSTS)
    assert len(set(sums)) == 1
    assert np.allclose(np.frombuffer(sums[0], np.float32), floats.sum(0), atol=1e-4)
    assert [path.split()[0] for path in paths] == ["shared"] * 2 + ["UDP"] + ["shared"] * 3
    nodes, chunks = tree_of(shown[0]), -(-5000 // 64)
    (first,), (second,) = nodes["leaf1"].children, nodes["leaf2"].children
    assert [(it, list(node.ranks), list(node.children)) for it, node in nodes.items()] == [
        ("spine", [], ["leaf1", "leaf2"]),
        ("leaf1", [2], [first]),
        ("leaf2", [], [second]),
        (first, [0, 1], []),
        (second, [3, 4, 5], []),
    ]
    for name in ("spine", "leaf1", "leaf2"):  # of some a copy more, perhaps
        children = len(nodes[name].ranks) + len(nodes[name].children)
        assert nodes[name].contributions >= children * chunks


@pytest.mark.parametrize("loss", [0.0, 0.05])
async def test_hosts_of_unequal_size_get_the_reference_s_bits(
    loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each packet may be lost at each port of each switch, hosts' shared memory included."""
    lossy = functools.partial(SoftSwitch, loss_rate=loss, loss_seed=9)
    monkeypatch.setattr("ina.switch.job_switch.SoftSwitch", lossy)
    hosts = ["127.0.1.1", *["127.0.1.2"] * 3, *["127.0.2.1"] * 2]
    rng = np.random.default_rng(5)
    dtypes: tuple[np.dtype[Any], ...] = (np.dtype(np.int32), *numerics.FLOATS)
    tensors = [
        [
            (rng.normal(size=length) * 1000).astype(dtype)  # of int32 they are numbers, too
            for _ in hosts
        ]
        for dtype in dtypes
        for length in (0, 1, 64 * 40 + 3)
    ]
    async with two_racks(loss) as (app, _):

        def work(session: Session, rank: int) -> tuple[list[np.ndarray[Any, Any]], int]:
            sums = [session.all_reduce(parts[rank]) for parts in tensors]
            return sums, session.stats().losses

        answers = await Group(hosts).together(app, work)
    assert all(isinstance(answer, tuple) for answer in answers), answers
    sums, losses = zip(*answers, strict=True)
    for tensor, parts in enumerate(tensors):
        want = numerics.all_reduce(parts, "sum", 64)
        for rank in range(len(hosts)):
            case = (rank, parts[0].dtype, len(parts[0]))
            assert numerics.same_bits(sums[rank][tensor], want), case
    # On a busy machine a socket's buffer may run over without any injected loss.
    assert sum(losses) > 0 or not loss


async def test_counts_of_a_host_s_node_come_with_its_rank_s_heartbeat() -> None:
    async with two_racks() as (app, _):
        loop = asyncio.get_running_loop()

        async def until_told() -> pb2.TreeNode:
            while True:
                for node in tree_of(await ask(app)).values():
                    # A heartbeat in the middle of the sum has told of a part.
                    if list(node.ranks) == [0, 1] and node.passed_down >= 10:
                        return node
                await asyncio.sleep(0.1)

        def work(session: Session, rank: int) -> pb2.TreeNode | None:
            session.all_reduce(np.ones(640, np.int32))
            told = None
            if rank == 0:
                waiting = asyncio.wait_for(until_told(), TIMEOUT_S)
                told = asyncio.run_coroutine_threadsafe(waiting, loop).result(TIMEOUT_S)
            session.all_reduce(np.ones(1, np.int32))
            return told

        node, *_ = await Group(HOSTS).together(app, work)
    assert isinstance(node, pb2.TreeNode), node
    assert (node.level, node.unread) == (1, "")
    assert node.contributions >= 20
    assert node.passed_down >= 10


async def test_one_host_below_one_switch() -> None:
    async with two_racks() as (app, _):

        def work(session: Session, rank: int) -> int:
            return int(session.all_reduce(np.array([1 << rank], np.int32))[0])

        assert await Group(["127.0.1.1"] * 3).together(app, work) == [7, 7, 7]


async def test_a_node_that_closes_before_it_answers_is_named() -> None:
    group = Group(["127.0.1.1"] * 2, op_timeout_s=0.5)
    all_joined = threading.Barrier(2, lambda: group.nodes[0].close(0.0))
    all_told = threading.Barrier(2)  # one that left would be the better explanation
    async with two_racks() as (app, _):

        def work(session: Session, _: int) -> str:
            all_joined.wait(TIMEOUT_S)
            with pytest.raises(OperationTimeoutError) as told:
                session.all_reduce(np.ones(1, np.int32))
            all_told.wait(TIMEOUT_S)
            return str(told.value)

        answers = await group.together(app, work)
    for answer in answers:
        assert isinstance(answer, str), answer
        end = "this host's node, in rank 0's process, has closed the shared memory"
        assert answer.endswith(end), answer


def test_ranks_of_a_second_host_have_a_node_below_an_embedded_switch(tmp_path: Path) -> None:
    with two_hosts() as (near, far):
        folder = tmp_path / "w"
        hosts = ["10.77.2.1"] * 2 + ["10.77.2.2"] * 2
        spaces = [near] * 2 + [far] * 2
        gloo = {"GLOO_SOCKET_IFNAME": "eth0"}
        workers = start(group_cases.its_stats, 4, folder, environ=gloo, hosts=hosts, spaces=spaces)
        finish(workers, 90.0)
    for rank in range(4):
        ok, stats = outcome(folder, rank)
        assert ok, stats
        assert (stats.session["transport"], stats.network_all_reduces) == ("shm", 1)


@contextlib.contextmanager
def two_hosts() -> Iterator[tuple[str, str]]:
    """Namespaces with 10.77.2.1 and 10.77.2.2, joined by a link."""
    require_root()
    tag = uuid.uuid4().hex[:6]
    names = f"ina{tag}a", f"ina{tag}b"
    try:
        for name in names:
            netns.add_host(name)
        one, other = (End(name, "eth0") for name in names)
        netns.add_pairs([(one, other)])
        for number, name in enumerate(names, 1):
            netns.ip(name, "addr", "add", f"10.77.2.{number}/24", "dev", "eth0")
            netns.ip(name, "link", "set", "eth0", "up")
        yield names
    finally:
        for name in names:
            if (netns.NETNS_DIR / name).exists():
                netns.delete(name)


def test_a_node_that_cannot_start_is_told_and_each_sends_its_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = Group(["127.0.1.1"] * 2)
    runner, other = group.node(0), group.node(1)
    assert runner is not None
    assert other is not None
    with caplog.at_level(logging.WARNING):
        # Its address is not this machine's, which is found before anything is compiled.
        assert runner.open(64, 64, "192.0.2.1", "192.0.2.2", TIMEOUT_S) is None
        assert other.open(64, 64, "192.0.2.1", "192.0.2.2", TIMEOUT_S) is None
    assert "cannot run its host's node, so each of ranks 0, 1 sends its own" in caplog.text


def test_ranks_of_a_process_s_host_find_each_other() -> None:
    store, found = HashStore(), {}
    # Rank 0 answers all: it comes last.
    store.set("ina/host/1", host_node._identity())
    store.set("ina/host/2", "")  # INA_HOST_NODE=0
    store.set("ina/host/3", "another host")
    found[0] = host_node.find(store, 0, 4, Settings(), 5.0)
    found[1] = host_node.find(store, 1, 4, Settings(), 5.0)
    found[2] = host_node.find(store, 2, 4, Settings(host_node=False), 5.0)
    assert [node is not None for node in found.values()] == [True, True, False]
    assert found[0] is not None
    assert found[0].contributions == 3


def test_a_host_of_many_ranks_has_nodes_of_at_most_32() -> None:
    assert [len(ranks) for ranks in host_node._groups(["here"] * 70)] == [32, 32, 6]


def test_another_word_than_0_and_1_is_refused() -> None:
    with pytest.raises(SettingError, match="INA_HOST_NODE=yes: want 0 or 1"):
        Settings.from_environ({"INA_HOST_NODE": "yes"})
    says = [Settings.from_environ({"INA_HOST_NODE": it}).host_node for it in ("", "0", "1")]
    assert says == [None, False, True]


def test_a_switch_on_this_host_needs_no_node_of_it() -> None:
    node = LocalNode(HashStore(), 1, [0, 1], 1, 0.1)  # else it would wait for rank 0
    assert node.open(64, 64, "10.0.0.1", "10.0.0.1", 0.1) is None
    assert node.open(64, 64, "127.0.0.1", "127.0.0.9", 0.1) is None


def test_a_node_waits_for_its_ranks_to_leave_and_says_who_has_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    node = LocalNode(HashStore(), 0, [0, 1], 1, TIMEOUT_S, even_near=True)
    place = node.open(64, 64, "127.0.1.1", "127.0.1.1", TIMEOUT_S)
    assert place is not None
    link = ShmLink.attach(place.shm, 32, 512)
    leaves = threading.Timer(0.3, link.close)
    leaves.start()
    node.close(TIMEOUT_S)
    assert not caplog.text
    node = LocalNode(HashStore(), 0, [0, 1], 1, TIMEOUT_S, even_near=True)
    place = node.open(64, 64, "127.0.1.1", "127.0.1.1", TIMEOUT_S)
    assert place is not None
    switch = node._switch
    assert switch is not None
    with closing(ShmLink.attach(place.shm, 32, 512)):
        wait_until(lambda: switch.attached == 1, "the rank is counted")  # it is answered before
        node.close(0.1)
    assert "stops its host's node although 1 of its ranks have not left after 0.1 s" in caplog.text
