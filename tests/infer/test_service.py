"""Plans that are served over loopback and summed in the soft switch, by what ships."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest

from ina.controller.embedded import Embedded
from ina.extension import infer as native
from ina.infer.client import InferenceClient
from ina.infer.errors import (
    NodeLostError,
    PlansDifferError,
    RequestDeadlineError,
    RequestError,
    ServiceError,
    SumsLostError,
)
from ina.infer.placing import Surroundings
from ina.infer.reference import answers_of
from tests.infer.local import embedded, nodes_of
from tests.infer.plans import SPLIT, dense, graph, local, samples_of, with_spec


@pytest.fixture(scope="module")
def controller() -> Iterator[Embedded]:
    with embedded() as both:
        yield both


@pytest.mark.parametrize(("make", "loss_rate"), [(dense, 0.0), (graph, 0.02)])
def test_answers_are_those_of_one_process(
    make: object, loss_rate: float, controller: Embedded
) -> None:
    plan = make(SPLIT, 4)  # type: ignore[operator]
    samples = samples_of(plan, 1, 333)
    want = answers_of(plan, samples)
    with (
        nodes_of(plan, controller.controller_addr, loss_rate=loss_rate) as (where, nodes),
        InferenceClient(plan, where, deadline_s=60) as client,
    ):
        pending = [client.ask(samples[first : first + 50]) for first in range(0, 333, 50)]
        got = np.concatenate([one.wait() for one in pending])
        assert np.array_equal(got, want)
        assert client.infer(samples[:0]).shape == (0, *want.shape[1:])
        assert all(node.error() is None for node in nodes)
        if loss_rate:
            assert sum(node.service.traffic.lost for node in nodes) > 0


def test_the_switch_adds_the_parts(controller: Embedded) -> None:
    """What nodes send each other does not hold them."""
    plan = graph(SPLIT, 4)
    before = controller.switch.stats().ports[1].rx_packets
    with (
        nodes_of(plan, controller.controller_addr) as (where, _),
        InferenceClient(plan, where) as client,
    ):
        client.infer(samples_of(plan, 1, 40))
    blocks = 40 // plan.spec.block
    assert controller.switch.stats().ports[1].rx_packets - before >= 2 * 4 * blocks


def test_the_first_answer_leaves_before_the_last_block_has_come(controller: Embedded) -> None:
    plan = dense(SPLIT, 3)
    samples = samples_of(plan, 1, 200 * plan.spec.block)
    with (
        nodes_of(plan, controller.controller_addr, most_moments=10_000) as (where, nodes),
        InferenceClient(plan, where, deadline_s=60) as client,
    ):
        client.infer(samples)
        moments = [moment for node in nodes for moment in node.service.take_moments()]
    came = {block: at_ns for at_ns, mark, _, _, block in moments if mark is native.Mark.CAME}
    left = {block: at_ns for at_ns, mark, _, _, block in moments if mark is native.Mark.ANSWERED}
    assert set(came) == set(left) == set(range(200))
    assert min(left.values()) < max(came.values())
    assert all(left[block] > came[block] for block in came)


ALONE = local(dense(SPLIT, 2))
"""Needs no switch."""


def test_no_controller_is_needed() -> None:
    samples = samples_of(ALONE, 1, 30)
    with nodes_of(ALONE, "") as (where, _), InferenceClient(ALONE, where) as client:
        assert np.array_equal(client.infer(samples), answers_of(ALONE, samples))


def test_strangers_and_damage_are_not_heard() -> None:
    samples = samples_of(ALONE, 1, 30)
    with (
        nodes_of(ALONE, "") as (where, nodes),
        InferenceClient(ALONE, where) as client,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger,
    ):
        random = np.random.default_rng(1)
        for peer in where.peers:
            for size in (0, 10, 64, 200):
                stranger.sendto(random.bytes(size), peer.place)
        other = Surroundings(where.key ^ 1, where.peers)
        with (
            InferenceClient(ALONE, other, deadline_s=0.3) as forger,
            pytest.raises(RequestDeadlineError, match="nothing was heard of the entry"),
        ):
            forger.infer(samples)
        assert np.array_equal(client.infer(samples), answers_of(ALONE, samples))
        assert all(node.service.damaged >= 4 for node in nodes)


def test_another_plan_is_told_apart() -> None:
    other = with_spec(ALONE, name="other")
    with (
        nodes_of(ALONE, "") as (where, _),
        InferenceClient(other, where) as client,
        pytest.raises(PlansDifferError, match="has another plan, or other weights"),
    ):
        client.infer(samples_of(other, 1, 3))


def test_values_outside_the_range_compute_nothing() -> None:
    """Also of who does not check what it asks."""
    plan = ALONE
    with nodes_of(plan, "") as (where, nodes), InferenceClient(plan, where) as client:
        bad = np.full((plan.spec.block, plan.spec.input.width), 99, np.int32)
        with pytest.raises(RequestError, match="the plan takes -16 to 15"):
            client.infer(bad)
        out = np.empty(1 << 12, np.int32)
        number = client.native.ask(bad.ctypes.data, 1, out.ctypes.data, 10**10)
        with pytest.raises(RequestError, match="the entry admits other values"):
            client.wait_for(number)
        assert nodes[plan.entry].service.counters.blocks == 0


def test_a_node_that_is_silent_is_named_after_the_patience() -> None:
    plan = ALONE
    quiet = next(node for node in range(2) if node != plan.entry)
    stages = tuple(
        msgspec.structs.replace(stage, nodes=plan.spec.nodes) for stage in plan.spec.stage
    )
    plan = with_spec(plan, stage=stages)
    with nodes_of(plan, "", patience_s=0.5) as (where, nodes):
        nodes[quiet].close()
        with InferenceClient(plan, where, deadline_s=30) as client:
            with pytest.raises(NodeLostError, match=plan.spec.nodes[quiet]):
                client.infer(samples_of(plan, 1, 30))
            with pytest.raises(NodeLostError, match=plan.spec.nodes[quiet]):
                client.infer(samples_of(plan, 1, 3))
        error = nodes[plan.entry].error()
        assert isinstance(error, NodeLostError)
        assert nodes[plan.entry].wait_failed(0.0)


def test_a_request_that_is_too_late_says_whom_it_lacks() -> None:
    plan = ALONE
    quiet = next(node for node in range(2) if node != plan.entry)
    stages = tuple(
        msgspec.structs.replace(stage, nodes=(plan.spec.nodes[quiet],)) for stage in plan.spec.stage
    )
    plan = with_spec(plan, stage=stages)
    with nodes_of(plan, "", patience_s=60) as (where, nodes):
        nodes[quiet].close()
        with (
            InferenceClient(plan, where, deadline_s=0.6) as client,
            pytest.raises(RequestDeadlineError) as caught,
        ):
            client.infer(samples_of(plan, 1, 30))
    said = f"the entry has heard nothing of node {plan.spec.nodes[quiet]!r}"
    assert said in str(caught.value)


def test_sums_that_do_not_come_are_named() -> None:
    """As of a switch that has died."""
    plan = graph(SPLIT, 3)
    with (
        embedded() as both,
        nodes_of(plan, both.controller_addr, patience_s=1.0) as (where, nodes),
        InferenceClient(plan, where, deadline_s=30) as client,
    ):
        client.infer(samples_of(plan, 1, 3))
        both.switch.stop()
        with pytest.raises(SumsLostError, match="the sums of stage 'gather'"):
            client.infer(samples_of(plan, 1, 3))
        assert all(node.wait_failed(30.0) for node in nodes)
        assert all(isinstance(node.error(), SumsLostError) for node in nodes)


def test_a_plan_with_sums_needs_a_controller() -> None:
    named = pytest.raises(ServiceError, match="is summed in a switch: name the controller")
    with named, nodes_of(graph(SPLIT, 2), ""):
        pass
