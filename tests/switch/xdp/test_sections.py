"""Two processors at one register: without a lock, what one adds is lost. With it nothing is."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ina.switch.emit_ebpf import statements
from ina.switch.targets import xdp_target
from ina.switch.xdp.pipeline import XdpPipeline
from ina.testing.soft_device import cannot_run_xdp
from tests.switch.ir.small import Json, field, number, op, small_program

TURNS = 500_000
"""Of each of two processors."""
ROUNDS = 40
"""Steps between a read and the write: so that two meet there."""
MOST_TRIES = 20
DROP = 511

pytestmark = [
    pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors"),
]


def program() -> bytes:
    """Adds 1 to a register, long after it was read, and drops the packet."""
    sums = {"type": "register_array", "value": "sums"}
    value, mixed = field("meta", "value"), field("meta", "mixed")

    def of(name: str, left: Json, right: Json) -> Json:
        return {"type": "expression", "value": {"op": name, "left": left, "right": right}}

    # Whatever it is, a compiler does not know that it is never this, so it must know it first.
    never = {**of("==", mixed, number(0x5EED5EED))["value"]}
    rare = {"op": "?", "cond": {"type": "expression", "value": never}}
    one = {"type": "expression", "value": {**rare, "left": number(2), "right": number(1)}}
    return json.dumps(
        small_program(
            op("register_read", value, sums, number(3)),
            op("assign", mixed, of("|", value, number(1))),
            *[op("assign", mixed, of("*", of("+", mixed, number(5)), mixed))] * ROUNDS,
            op("assign", value, of("+", value, one)),
            op("register_write", sums, number(3), value),
            op("assign", field("standard_metadata", "egress_spec"), number(DROP)),
            metadata={"meta": {"value": 32, "mixed": 32}},
            register_arrays=[{"name": "sums", "id": 0, "size": 8, "bitwidth": 32}],
        )
    ).encode()


@contextmanager
def loaded(cache: Path) -> Iterator[XdpPipeline]:
    with xdp_target(cache).load(program()) as pipeline:
        assert isinstance(pipeline, XdpPipeline)
        yield pipeline


def added(pipeline: XdpPipeline) -> int:
    """What the register has, when both processors have had their turns."""
    pipeline.process(1, bytes(60))  # and the interface is a port
    ready = threading.Barrier(2)

    def turn(processor: int) -> None:
        os.sched_setaffinity(0, {processor})  # of this thread
        ready.wait(60)
        pipeline.repeat(bytes(60), TURNS)

    threads = [threading.Thread(target=turn, args=(it,)) for it in sorted(os.sched_getaffinity(0))]
    for thread in threads[:2]:
        thread.start()
    for thread in threads[:2]:
        thread.join(120)
    return pipeline.register("sums", 3) - 1


def test_two_processors_lose_nothing(tmp_path: Path) -> None:
    with loaded(tmp_path) as pipeline:
        assert added(pipeline) == 2 * TURNS


def test_without_the_lock_they_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "LOCK", "")
    monkeypatch.setattr(statements, "UNLOCK", "")
    with loaded(tmp_path) as pipeline:
        for _ in range(MOST_TRIES):  # others may keep the two from running side by side
            pipeline.set_register("sums", 3, 0)
            if added(pipeline) < 2 * TURNS:
                return
    raise AssertionError("nothing was lost")
