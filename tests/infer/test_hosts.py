"""That hosts conduct nothing: which threads of the nodes' processes run while requests are asked.

The kernel counts how often each thread has been given a processor. One that was given none has made
no system call, or anything else. Heartbeats and gRPC's timers run now and then, whatever is asked:
so requests are asked one by one, and those count in which none of them happened to.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ina.infer.client import InferenceClient
from ina.infer.files import write_plan
from ina.infer.local import LocalNodes, LocalOptions
from ina.infer.reference import answers_of
from tests.infer.plans import SPLIT, dense, samples_of

REQUESTS = 300
OURS = "ina-infer"


def turns(pids: list[int]) -> dict[tuple[int, str], int]:
    """Of each thread, by process and name: how often it has been given a processor."""
    found: dict[tuple[int, str], int] = {}
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            name = (task / "comm").read_text().strip()
            key = pid, name if name == OURS else task.name
            found[key] = int((task / "schedstat").read_text().split()[2])
    return found


@pytest.mark.long
@pytest.mark.timeout(300)
def test_requests_are_answered_while_no_thread_of_a_host_runs(tmp_path: Path) -> None:
    plan = write_plan(tmp_path / "plan.toml", dense(SPLIT, 3))
    samples = samples_of(plan, 1, plan.spec.block)
    want = answers_of(plan, samples)
    options = LocalOptions()
    with (
        LocalNodes(tmp_path / "plan.toml", plan, tmp_path / "places.json", options) as nodes,
        InferenceClient(plan, nodes.where, deadline_s=60) as client,
    ):
        pids = [process.pid for process in nodes.processes.values()]
        alone = 0
        for _ in range(REQUESTS):
            before = turns(pids)
            assert np.array_equal(client.infer(samples), want)
            after = turns(pids)
            ran = {key for key in after if after[key] != before.get(key)}
            entry = pids[plan.entry], OURS
            assert entry in ran
            alone += all(name == OURS for _, name in ran)
    print(f"{alone} of {REQUESTS} requests were answered while no thread but {OURS} ran")
    assert alone > 0
