"""Jobs over several trees in the virtual network, whose switches forward by destination alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation
from ina.trees.forest import Forest
from ina.trees.nearest import Located, Nearest
from ina.trees.tree import Node, Tree

TOPOLOGY = {"kind": "leaf-spine", "leaves": 3, "spines": 2, "hosts": 2, "above": "p4"}
TENSORS = [{"elems": 200_000}, {"elems": 5000, "dtype": "int32"}]
JOB = {"workers": 6, "racks": 3, "steps": 2, "tensors": TENSORS}
SPINES = ("s1", "s2")
SHARES = (1, 3)


class Spines(Nearest):
    """A tree for each spine; workers behind ``past`` send to the first spine, not to their leaf."""

    past = ""

    def forest(self, job: str, endpoints: Mapping[int, Located]) -> Forest:
        """Of any job."""
        passes = (self.past, "")
        trees = (
            self._tree(spine, past, endpoints) for spine, past in zip(SPINES, passes, strict=True)
        )
        return Forest(tuple(trees), SHARES)

    def _tree(self, spine: str, past: str, endpoints: Mapping[int, Located]) -> Tree:
        racks: dict[str, list[int]] = {}
        for rank, at in sorted(endpoints.items()):
            racks.setdefault(self.fabric.hosts[at.peer.address].switch, []).append(rank)
        own = tuple(racks.pop(past, ()))
        ports = {leaf: self.fabric.port_towards(spine, leaf) for leaf in racks}
        root = Node(
            spine,
            own,
            tuple(racks),
            tuple(map(int, ports.values())),
            rank_ports=tuple(self.port_to(spine, endpoints[rank].peer.address) for rank in own),
        )
        leaves = (
            Node(leaf, tuple(ranks), (), (), spine, int(self.fabric.port_towards(leaf, spine)))
            for leaf, ranks in racks.items()
        )
        return Tree((root, *leaves))


def run(**more: Any) -> Report:
    document = {"topology": TOPOLOGY, "job": [JOB], **more}
    return Simulation(make(document), 1, mend_at_s=1.0).run()


@pytest.fixture(autouse=True)
def _over_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Nearest, "forest", Spines.forest)
    monkeypatch.setattr(Nearest, "_tree", Spines._tree, raising=False)
    monkeypatch.setattr(Nearest, "past", "", raising=False)


def all_done(report: Report) -> None:
    assert report.violations == []
    assert [job.steps_done for job in report.jobs] == [2], report.events
    assert report.sums_checked == 6 * 2 * len(TENSORS)


@pytest.mark.parametrize("multicast", [False, True])
def test_links_carry_the_shares_of_their_trees(multicast: bool) -> None:
    report = run(multicast=multicast)
    all_done(report)
    packets = {port.name: port.packets for port in report.ports}
    for leaf in ("l1", "l2", "l3"):
        up = [packets[f"{leaf}>{spine}"] for spine in SPINES]
        assert up[1] == pytest.approx(3 * up[0], rel=0.05)
        assert up == [packets[f"{spine}>{leaf}"] for spine in SPINES]
        of_a_host = packets[f"h{2 * int(leaf[1])}>{leaf}"]  # one contribution a rack
        assert sum(up) == pytest.approx(of_a_host, rel=0.01)


@pytest.mark.parametrize("loss", [0.0, 0.01])
def test_a_leaf_forwards_what_is_summed_above_it(
    loss: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Nearest, "past", "l2", raising=False)
    report = run(link={"loss": loss})
    all_done(report)
    if not loss:
        packets = {port.name: port.packets for port in report.ports}
        # Of a quarter of the lanes both workers' parts go up, and their results come down.
        assert packets["l2>s1"] == packets["s1>l2"] == 2 * packets["l1>s1"]
        assert packets["l2>s2"] == pytest.approx(packets["l1>s2"], rel=0.01)


def test_what_goes_wrong_with_one_tree_s_root_ends_the_job_and_it_begins_again() -> None:
    fault = {"what": "power_cycle", "where": "s2", "at_ms": 105, "for_ms": 50}
    job = {**JOB, "steps": 20, "compute_ms": 5}
    document = {"topology": TOPOLOGY, "job": [job], "fault": [fault]}
    report = Simulation(make(document), 1, mend_at_s=1.0).run()
    assert report.violations == []
    assert len(report.jobs) == 2
    assert sum(it.steps_done for it in report.jobs) >= 20
