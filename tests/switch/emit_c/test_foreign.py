"""Programs that p4c does not write: of other compilers, of older ones, of other switches."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir import load_program
from ina.switch.pipeline import Pipeline
from tests.switch.ir.small import PORTS, Json, back, field, number, op, small_program

Run = Callable[[Json], Pipeline]


@pytest.fixture
def run(cache_dir: Path) -> Iterator[Run]:
    opened: list[Pipeline] = []

    def _run(program: Json) -> Pipeline:
        opened.append(Pipeline.load(json.dumps(program), cache_dir=cache_dir))
        return opened[-1]

    yield _run
    for pipeline in opened:
        pipeline.close()


OLD = PORTS | {"egress_port": 9, "clone_spec": 32, "instance_type": 32, "packet_length": 32}
"""standard_metadata as P4_14 has it: no multicast group, no time stamps, no queues."""


@pytest.mark.parametrize("standard", [OLD, PORTS, {"egress_spec": 9}])
def test_fields_of_standard_metadata_may_be_absent(run: Run, standard: dict[str, int]) -> None:
    send = (
        back()
        if "ingress_port" in standard
        else op("assign", field("standard_metadata", "egress_spec"), number(3))
    )
    assert run(small_program(send, standard=standard)).process(3, b"ab!") == [(3, b"ab!")]
    drop = op("mark_to_drop", {"type": "header", "value": "standard_metadata"})
    assert run(small_program(drop, standard=standard)).process(3, b"ab!") == []


def test_fields_of_standard_metadata_have_the_programs_width(run: Run) -> None:
    """A group number wider than there are groups, a time stamp narrower than the time."""
    standard = PORTS | {"mcast_grp": 32, "ingress_global_timestamp": 8}
    group = op("assign", field("standard_metadata", "mcast_grp"), number(0x7FFF0001))
    pipeline = run(small_program(group, standard=standard))
    pipeline.set_multicast(1, [(2, 0), (4, 0)])
    assert pipeline.process(0, b"ab") == [(2, b"ab"), (4, b"ab")]
    time = op("assign", field("h", "a"), field("standard_metadata", "ingress_global_timestamp"))
    assert run(small_program(back(), time, standard=standard)).process(1, b"ab", 0x1234_000) == [
        (1, bytes([0x1234_000 // 1000 & 0xFF]) + b"b")
    ]


def test_metadata_of_p4_14_beside_standard_metadata(run: Run) -> None:
    """intrinsic_metadata and queueing_metadata are simple_switch's, too."""
    metadata = {
        "intrinsic_metadata": {"mcast_grp": 4, "egress_rid": 4, "ingress_global_timestamp": 48},
        "queueing_metadata": {"enq_qdepth": 16},
    }
    group = op("assign", field("intrinsic_metadata", "mcast_grp"), field("h", "a"))
    mark = op("assign", field("h", "a"), field("intrinsic_metadata", "egress_rid"))
    depth = op("assign", field("h", "b"), field("queueing_metadata", "enq_qdepth"))
    pipeline = run(small_program(back(), group, egress=(mark, depth), metadata=metadata))
    pipeline.set_multicast(5, [(2, 7), (2, 8)])
    assert pipeline.process(1, b"\x05x") == [(2, b"\x07\x00"), (2, b"\x08\x01")]
    assert pipeline.process(1, b"\x10x") == [(1, b"\x00\x00")]  # 4 bits: no group


@pytest.mark.parametrize(
    ("change", "construct"),
    [
        ({"pipelines": [{"name": "main_control"}]}, "pipelines: main_control; expected: ingress"),
        ({"standard": {"ingress_port": 9}}, "'standard_metadata' has no 'egress_spec'"),
    ],
)
def test_programs_of_other_switches_are_refused_as_such(change: Json, construct: str) -> None:
    with pytest.raises(UnsupportedProgramError) as caught:
        load_program(json.dumps(small_program(**change)))
    assert "an architecture other than v1model" in str(caught.value)
    assert construct in str(caught.value)
