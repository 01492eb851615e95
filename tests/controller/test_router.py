"""Placement by policies: from registry and fabric to forests; plans of jobs; outages."""

from __future__ import annotations

from functools import partial
from ipaddress import IPv4Address
from typing import Any

import pytest

from ina.controller.config import Config, make_config
from ina.controller.errors import NoRoomError
from ina.controller.job import Job, JobSpec
from ina.controller.jobs.events import EventBus
from ina.controller.jobs.numbers import EpochCounter
from ina.controller.jobs.outages import StoredOutages
from ina.controller.jobs.record import Record
from ina.controller.jobs.registry import Registry
from ina.controller.memory import FirstFit
from ina.controller.memory.demand import StepModel
from ina.controller.placing.router import Router
from ina.controller.service.planning import plan_route
from ina.controller.store import IN_MEMORY, open_store
from ina.controller.switches.capacity import Capacity
from ina.fabric.graph import Fabric
from ina.fabric.outages import NOTHING, Down
from ina.fabric.shapes import Rates, leaf_spine
from ina.protocol.peer import Peer
from ina.rpc import controller_pb2 as pb2
from ina.tables.errors import SwitchError
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError

SLOTS, JOB_SLOTS = 256, 64
UP_BITS_PER_S = 0.5e9
"""Half of a host's: one spine is not enough."""


class Placed:
    """A registry whose placement is a router, over two spines and three leaves of three hosts."""

    def __init__(self, slots: int = SLOTS, up: float = UP_BITS_PER_S, **document: Any) -> None:
        self.fabric: Fabric = leaf_spine(2, 3, 3, Rates(host=1e9, up=up))
        self.lost: set[str] = set()
        capacities = {
            name: Capacity(
                FirstFit(slots, JOB_SLOTS),
                values=64,
                is_reached=partial(self._is_reached, name),
            )
            for name in self.fabric.switches
        }
        self.down = NOTHING
        self.registry = Registry(
            *(capacities, EpochCounter(0), range(1, 60)),
            placement=lambda registry: self._router(registry, **document),
        )
        assert isinstance(self.registry.placement, Router)
        self.router = self.registry.placement

    def _router(self, registry: Registry, **document: Any) -> Router:
        config = _config(**document)
        return Router(
            *(self.fabric, lambda _switch, port: int(port), config, registry),
            lambda: self.down,
        )

    def _is_reached(self, name: str) -> bool:
        return name not in self.lost

    def joined(self, name: str, hosts: list[int], slots: int = 0) -> Job:
        """All of whose ranks have joined, the last rank first; by number of their hosts."""
        job = self.registry.create(JobSpec(name, len(hosts), slots), 0.0)
        for rank, number in reversed(list(enumerate(hosts))):
            address = IPv4Address("10.0.0.1") + number
            place = self.fabric.hosts[address]
            endpoint = Endpoint(Peer(address, 4000), int(place.port), switch=place.switch)
            self.registry.join(name, rank, endpoint)
        return job

    def placed(self, name: str, hosts: list[int], slots: int = 0) -> Job:
        job = self.joined(name, hosts, slots)
        self.registry.place(job)
        self.registry.installed(job)
        return job


def _config(**document: Any) -> Config:
    fabric = leaf_spine(2, 3, 3)
    switches = [
        {"name": name, "grpc_addr": f"{name}:9559", "data_host": f"10.1.0.{number}"}
        for number, name in enumerate(fabric.switches, 1)
    ]
    links = [{"switches": list(link.switches), "ports": list(link.ports)} for link in fabric.links]
    return make_config({"switch": switches, "link": links, **document}, "test")


def roots(job: Job) -> list[str]:
    assert job.forest is not None
    return sorted(root.switch for root in job.forest.roots)


ALL = list(range(9))


def test_a_job_has_a_tree_over_each_spine_with_half_of_its_slots() -> None:
    placed = Placed()
    job = placed.placed("train", ALL)
    assert roots(job) == ["spine1", "spine2"]
    slots = {name: taken.slots for name, taken in job.memory.items()}
    assert slots == {"leaf1": 64, "leaf2": 64, "leaf3": 64, "spine1": 32, "spine2": 32}
    assert job.forest is not None
    assert [job.forest.trees[0].first_node(rank).switch for rank in ALL] == [
        *["leaf1"] * 3,
        *["leaf2"] * 3,
        *["leaf3"] * 3,
    ]


@pytest.mark.parametrize("placement", ["nearest", "single", "panama", "goat", "ina"])
def test_placements_go_by_the_file_and_by_jobs_names(placement: str) -> None:
    rule = {"name": "paper-*", "placement": placement}
    placed = Placed(placement="nearest", job=[rule])
    assert placed.router.policy_of("paper-1") == placement
    assert placed.router.policy_of("other") == "nearest"
    job = placed.placed("paper-1", ALL)
    assert placed.registry.get("paper-1") is job
    assert roots(placed.placed("other", ALL)) == ["spine1"]


def test_another_job_finds_the_spine_that_is_free() -> None:
    placed = Placed(routing={"stripes": 1})
    first, second = placed.placed("one", [0, 3]), placed.placed("two", [1, 4])
    assert {*roots(first), *roots(second)} == {"spine1", "spine2"}


def test_a_switch_that_is_not_reached_is_left_out_as_long_as_another_way_leads_there() -> None:
    placed = Placed()
    placed.lost = {"spine1"}
    assert roots(placed.placed("train", ALL)) == ["spine2"]
    placed.lost = {"leaf1"}  # its workers have no other
    job = placed.joined("other", ALL)
    with pytest.raises(SwitchError, match="'leaf1' cannot be reached, and no way leads around"):
        placed.registry.place(job)
    assert {it.memory.used() for it in placed.registry.switches.values()} == {0, 64}


def test_nearest_goes_around_what_is_down_too() -> None:
    placed = Placed(placement="nearest")
    placed.down = Down(links=frozenset({frozenset({"leaf2", "spine1"})}))
    assert roots(placed.placed("train", ALL)) == ["spine2"]


def test_where_tops_are_full_workers_send_past_them_and_then_there_is_no_room() -> None:
    placed = Placed(slots=64)
    placed.placed("train", ALL)  # has all slots of leaves, and half of each spine's
    past = placed.placed("past", ALL)
    assert past.forest is not None
    assert set(past.memory) == {"spine1", "spine2"}
    assert {node.switch for node in past.forest.first_nodes(0)} == {"spine1", "spine2"}
    job = placed.joined("third", ALL)
    with pytest.raises(NoRoomError, match="job 'third': no slots left on"):
        placed.registry.place(job)
    assert {it.memory.used() for it in placed.registry.switches.values()} == {64}


def test_a_policy_that_fails_is_told_and_the_job_is_placed_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_name: str) -> object:
        raise ZeroDivisionError

    monkeypatch.setattr("ina.controller.placing.router.policy", broken)
    placed = Placed()
    assert roots(placed.placed("train", ALL)) == ["spine1"]
    assert "placement ina failed; placed as nearest" in caplog.text


STEPS = StepModel(compute_s=0.0, overlap_s=0.0, bytes=1e6, lane_bytes_per_s=1e9)


def _plan(placed: Placed, hosts: list[int], **more: Any) -> pb2.RoutePlan:
    addresses = [str(IPv4Address("10.0.0.1") + number) for number in hosts]
    arguments = {"placement": "", "steps": STEPS, **more}
    return plan_route(placed.router, "planned", addresses, **arguments)


def test_a_plan_says_where_how_long_and_whom_it_slows_down() -> None:
    placed = Placed(up=1e9, routing={"stripes": 1})
    placed.registry.room.known_steps = lambda job: STEPS  # type: ignore[method-assign]
    placed.placed("one", [0, 3])
    alone = _plan(Placed(up=1e9), [1, 4])
    wire_s = 8 * 1e6 / 1e9 * alone.step_alone_s / alone.step_alone_s
    assert alone.step_s == pytest.approx(alone.step_alone_s)
    assert alone.step_s == pytest.approx(wire_s, rel=0.35)  # headers take the rest
    assert alone.slowed == []

    aside = _plan(placed, [1, 4])
    assert aside.slowed == []  # it takes the other spine
    same = _plan(placed, [1, 4], placement="nearest")
    (slowed,) = same.slowed
    assert slowed.name == "one"
    assert slowed.after_s == pytest.approx(2 * slowed.before_s)
    assert same.step_s == pytest.approx(2 * same.step_alone_s)
    assert same.limit in ("leaf1-spine1", "leaf2-spine1")
    assert same.trees[0].switches[0] == "spine1"


def test_a_plan_without_aggregation_is_a_ring_over_the_same_links() -> None:
    found = _plan(Placed(up=10e9), ALL)
    assert found.step_without_s == pytest.approx(2 * 8 / 9 * found.step_alone_s)
    assert not found.supposed
    assert _plan(Placed(), ALL, steps=None).supposed


@pytest.mark.parametrize(
    ("hosts", "more", "says"),
    [
        (["10.0.0.99"], {}, "a host at 10.0.0.99 is behind no switch"),
        (["10.0.0.1"], {"placement": "best"}, "no policy 'best'"),
        (["nowhere"], {}, "'nowhere'"),
    ],
)
def test_a_plan_that_cannot_be_is_one_line(
    hosts: list[str], more: dict[str, str], says: str
) -> None:
    arguments: dict[str, Any] = {"placement": "", "steps": None, **more}
    with pytest.raises(JobRequestError, match=says):
        plan_route(Placed().router, "planned", hosts, **arguments)


def test_a_job_is_broken_by_what_its_trees_go_over() -> None:
    placed = Placed(routing={"stripes": 1})
    job = placed.placed("train", ALL)
    (root,) = roots(job)
    other = "spine2" if root == "spine1" else "spine1"
    assert placed.router.broken(job) == ""
    placed.down = Down(frozenset(), frozenset({frozenset({"leaf2", other})}))
    assert placed.router.broken(job) == ""
    placed.down = Down(frozenset(), frozenset({frozenset({"leaf2", root})}))
    assert placed.router.broken(job) == f"the link between leaf2 and {root} is down"
    placed.down = Down(frozenset({root}))
    assert placed.router.broken(job) == f"{root} is down"


async def test_what_is_down_is_stored_told_and_taken_back() -> None:
    store = open_store(IN_MEMORY)
    record, events = Record(store.claim("test")), EventBus()
    fabric = leaf_spine(2, 2, 1)
    outages = StoredOutages(fabric, record, events)
    with events.subscribe() as told:
        assert outages.put("spine1-leaf2", is_down=True)
        assert not outages.put("leaf2-spine1", is_down=True)  # the same link
        assert outages.put("spine2", is_down=True)
        assert outages.names == ["leaf2-spine1", "spine2"]
        event = await anext(aiter(told))
        assert (event.kind, event.reason) == (pb2.FABRIC_CHANGED, "leaf2-spine1 is down")
    down = Down(frozenset({"spine2"}), frozenset({frozenset({"leaf2", "spine1"})}))
    assert outages.down == outages.away == down
    outages.unreached.add("leaf1")
    assert outages.away == Down(down.switches | {"leaf1"}, down.links)
    again = StoredOutages(fabric, record, events, store.load_down())
    assert again.down == down
    assert again.put("spine2", is_down=False)
    assert store.load_down() == ["leaf2-spine1"]
    with pytest.raises(JobRequestError, match="no switch or link is called 'spine9'"):
        again.put("spine9", is_down=True)
    assert StoredOutages(leaf_spine(1, 1, 1), record, events, ["gone"]).names == []
