"""What ranks are told of whose chunks packets may be, and operators of trees that cannot say it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ina import modes
from ina.controller.change import Terms
from ina.controller.config.tables import SwitchConfig
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.changes import Told
from ina.controller.service.show import show_job
from ina.controller.service.tickets import Tickets
from ina.controller.watch.failure_detector import FailureDetector
from ina.host.calls import remapped
from ina.host.ticket import Ticket
from ina.host.trees import TreePlace
from ina.p4 import names
from ina.protocol.peer import Peer
from ina.protocol.spec import OWNER_BITS
from ina.rpc import controller_pb2 as pb2
from ina.trees.forest import Forest, forest_of
from ina.trees.mapping import Mapping
from ina.trees.nearest import Nearest
from ina.trees.slots import SlotRange
from ina.trees.tree import Node, Tree, single
from tests.controller.forests import AT_A_SPINE, ONE_TO_THREE, SECOND_SPINE
from tests.worlds.fakes.changing import S, decide
from tests.worlds.fakes.racks import JOB_SLOTS, Racks, fabric
from tests.worlds.fakes.switches import placed_over

pytestmark = pytest.mark.usefixtures("quick_retries")

WITH_SHAPES = (names.POOL, names.SHARED)
BESIDE = "job {!r}: collectives that are no sums go beside the network: "
TOO_LONG = "the longest path of its trees takes 13 bits, of 12 that there are"
DEEP = Tree(
    (
        Node("spine", tuple(range(31)), ("leaf1",), (1,)),
        Node("leaf1", tuple(range(31, 62)), ("leaf2",), (1,), parent="spine", parent_port=9),
        Node("leaf2", (62, 63, 64), parent="leaf1", parent_port=9),
    )
)
"""6 bits at its root, 5 below that, 2 at the last."""


class Over(Nearest):
    """Every job over one forest."""

    def __init__(self, over: Forest) -> None:
        super().__init__(fabric())
        self._over = over

    def forest(self, job: str, endpoints: Any) -> Forest:
        return self._over


def job_over(tree: Tree) -> Job:
    memory = {node.switch: SlotRange(0, JOB_SLOTS, JOB_SLOTS) for node in tree}
    return Job(JobSpec("j", 65), 3, 0.0, placed_over(forest_of(tree), memory, 3, 1))


def as_read(racks: Racks, job: Job, rank: int, by: Mapping | None = None) -> Ticket:
    """What a rank makes of what it is told, which it checks; ``by``: of the job's mappings."""
    had = TreePlace(3, Peer.at(("10.9.0.1", 17760)), 0, 0, 1, 0, 32)
    ticket = Ticket("j", 1, rank, job.world_size, 64, 64, (had,))
    told = Tickets(racks.configs, lambda _: pb2.Congestion(algorithm="fixed")).mapping(
        job, rank, Told(by or job.mapping, Terms(S, waits=False))
    )
    return remapped(ticket, told)


async def test_each_rank_is_told_the_paths_of_all_in_each_tree() -> None:
    racks = Racks(more=[SECOND_SPINE])
    await racks.start()
    racks.registry.placement = Over(ONE_TO_THREE)
    job = await racks.run(slots=32)
    for rank in range(4):
        ticket = as_read(racks, job, rank)
        for place in ticket.trees:
            assert place.owners == (0b000 << 9, 0b001 << 9, 0b010 << 9, 0b011 << 9)
            assert place.owners[rank] << OWNER_BITS == place.path
    await racks.coordinator.changes.change(job, forest=forest_of(AT_A_SPINE), why="a test")
    by = decide(racks, job).mapping
    (place,) = as_read(racks, job, 3, by).trees
    # 2 bits at the root, of whose three children the switch is the last, and 1 below.
    assert place.owners == (0b00 << 10, 0b01 << 10, 0b100 << 9, 0b101 << 9)


def test_of_a_tree_with_longer_paths_nobody_is_told_any() -> None:
    job = job_over(DEEP)
    assert (DEEP.path_bits, job.lacks_shapes) == (13, TOO_LONG)
    (place,) = as_read(Racks(), job, 64).trees
    assert (place.path, place.owners) == (0b11111_11111_10 << 11, ())


@pytest.mark.parametrize(("mode", "has"), [(it, it in WITH_SHAPES) for it in modes.names()])
def test_a_mode_has_shapes_or_has_not(mode: str, has: bool) -> None:
    tree = single("leaf1", 3)
    assert modes.of(mode).owners(tree) == ((0x000, 0x400, 0x800) if has else ())
    why = "" if has else f"mode {mode!r} has sums alone"
    assert modes.of(mode).lacks_shapes(forest_of(tree)) == why


async def test_it_is_said_of_a_job_that_its_collectives_go_beside_the_network(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level("INFO", logger="ina.controller.jobs.events")
    racks = Racks()
    await racks.start()
    detector = FailureDetector(racks.coordinator, 10.0)
    shown = show_job(await racks.run(), detector)
    assert (shown.has_shapes, shown.lacks_shapes) == (True, "")
    assert "beside" not in caplog.text

    monkeypatch.setattr(Tree, "path_bits", property(lambda _: 13))
    shown = show_job(await racks.run("k", (1, 2)), detector)
    assert (shown.has_shapes, shown.lacks_shapes) == (False, TOO_LONG)
    said = [it.getMessage() for it in caplog.records if "beside" in it.getMessage()]
    assert said == [BESIDE.format("k") + TOO_LONG]


@pytest.mark.parametrize(("target", "values", "expands"), [
    ("soft", 1024, True), ("tofino", 64, True), ("bmv2", 64, True), ("bmv2", 256, False),
    ("bmv2", 0, False),
])  # fmt: skip
def test_bmv2_has_no_room_for_more_than_512_bytes_behind_a_packet(
    target: Any, values: int, expands: bool
) -> None:
    """It ends where a packet grows by more."""
    config = SwitchConfig(target=target, values=values)
    assert config.expands == expands
    assert not replace(config, grows=False).expands


async def test_over_a_switch_without_room_for_values_all_rounds_are_sums() -> None:
    racks = Racks()
    await racks.start()
    for capacity in racks.registry.switches.values():
        capacity.expands = False
    job = await racks.run()
    shown = show_job(job, FailureDetector(racks.coordinator, 10.0))
    why = "switch 'spine' has no room for values behind a header that comes alone"
    assert (shown.has_shapes, shown.lacks_shapes) == (False, why)
    assert all(place.owners == () for place in as_read(racks, job, 0).trees)


async def test_nothing_is_said_of_a_job_that_has_no_trees_yet() -> None:
    racks = Racks()
    await racks.start()
    await racks.coordinator.create(JobSpec("j", 2, mode=names.POOL), 0.0)
    shown = show_job(racks.registry.get("j"), FailureDetector(racks.coordinator, 10.0))
    assert (shown.has_shapes, shown.lacks_shapes) == (False, "")
