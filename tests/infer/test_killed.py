"""SIGKILL to each process of a plan in turn, while it is asked."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ina.errors import InaError
from ina.infer.client import InferenceClient
from ina.infer.errors import NodeLostError, SumsLostError
from ina.infer.files import write_plan
from ina.infer.local import LocalNodes, LocalOptions
from ina.infer.plan import InferencePlan
from ina.infer.reference import answers_of
from tests.infer.plans import SPLIT, dense, samples_of

DEADLINE_S = 12.0


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("victim", ["a", "b", "c", "switch"])
def test_whoever_is_killed_is_named_and_no_answer_is_wrong(victim: str, tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", dense(SPLIT, 3))
    samples = samples_of(plan, 1, 200)
    entry = plan.spec.nodes[plan.entry]
    with LocalNodes(
        tmp_path / "plan.toml", plan, tmp_path / "places.json", LocalOptions(patience_s=2.0)
    ) as nodes:
        assert nodes.embedded is not None

        def kill() -> None:
            time.sleep(0.5)
            if victim == "switch":
                assert nodes.embedded is not None
                nodes.embedded.switch.stop()
            else:
                os.kill(nodes.processes[victim].pid, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        caught = _ask_until_it_fails(plan, nodes, samples)
        killer.join()
        if victim == entry:
            assert f"nothing was heard of the entry, node {entry!r}" in str(caught)
        elif victim == "switch":
            assert isinstance(caught, SumsLostError)
        else:
            assert isinstance(caught, NodeLostError)
            assert f"node {victim!r} is lost" in str(caught)
        others = {name: process for name, process in nodes.processes.items() if name != victim}
        for name, process in others.items():
            assert process.wait(30) == 1, name
            if victim != "switch":
                assert f"node {victim!r} is lost" in nodes.said(name)


def _ask_until_it_fails(plan: InferencePlan, nodes: LocalNodes, samples: Any) -> InaError:
    want = answers_of(plan, samples)
    with InferenceClient(plan, nodes.where, deadline_s=DEADLINE_S) as client:
        while True:
            try:
                assert np.array_equal(client.infer(samples), want)
            except InaError as error:
                return error
