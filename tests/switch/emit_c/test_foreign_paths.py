"""Programs as others write them: the main path does what the general one does, and what is right.

Each is the smallest that one pass made wrong, with the packet that showed it. What is right is what
the P4 says and, for ``packet_length``, what BMv2's add_header and remove_header count.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from ina.switch.passes.plan import make_plan
from ina.switch.pipeline import Exact, Pipeline
from tests.switch.foreign_programs import CASES, Case


def run(case: Case, cache_dir: Path) -> list[tuple[int, str]]:
    """What leaves, as (port, hex)."""
    with Pipeline.load(case.program.json(), cache_dir=cache_dir) as pipeline:
        for table, key, action, params in case.entries:
            pipeline.insert(table, [Exact(key)], action, params)
        if case.replicas:
            pipeline.set_multicast(1, case.replicas)
        sent = pipeline.process(0, bytes.fromhex(case.packet))
    return [(port, data.hex()) for port, data in sent]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_main_and_general_path_do_what_is_right(
    case: Case, cache_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(case, cache_dir) == case.right
    monkeypatch.setattr("ina.switch.pipeline.make_plan", partial(make_plan, main_path=False))
    assert run(case, cache_dir / "general") == case.right
