"""Nodes of a plan in this process, with a controller and a soft switch."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator

from ina.controller.embedded import Embedded
from ina.infer.node import NodeOptions, NodeService
from ina.infer.places import around
from ina.infer.placing import Surroundings
from ina.infer.plan import InferencePlan


@contextlib.contextmanager
def nodes_of(
    plan: InferencePlan, controller: str, **options: object
) -> Iterator[tuple[Surroundings, list[NodeService]]]:
    """All nodes of the plan, which join their jobs at once."""
    doors = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in plan.spec.nodes]
    for door in doors:
        door.bind(("127.0.0.1", 0))
    names = plan.spec.nodes
    places = [f"127.0.0.1:{door.getsockname()[1]}" for door in doors]
    where = around(plan, dict(zip(names, places, strict=True)))
    made: dict[int, NodeService] = {}
    failed: list[BaseException] = []

    def make(node: int) -> None:
        try:
            made[node] = NodeService(
                plan, node, where, doors[node],
                NodeOptions(controller=controller, loss_seed=node, **options),  # type: ignore[arg-type]
            )  # fmt: skip
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=make, args=(node,)) for node in range(len(names))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    try:
        if failed:
            raise failed[0]
        yield where, [made[node] for node in range(len(names))]
    finally:
        closing = [threading.Thread(target=node.close) for node in made.values()]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(60)


@contextlib.contextmanager
def embedded() -> Iterator[Embedded]:
    """A controller and a soft switch."""
    with Embedded(values=64) as both:
        yield both
