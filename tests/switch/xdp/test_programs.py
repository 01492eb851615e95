"""The programs of tests/switch/programs: the kernel makes of packets what the C target does."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ina.switch.errors import UnsupportedProgramError
from ina.switch.targets import xdp_target
from ina.tables.values import Counter
from ina.testing.soft_device import cannot_run_xdp
from tests.conformance.programs import FOLDER, STRESSES, Stress
from tests.selection import LONG
from tests.switch.quick import quick
from tests.switch.xdp.filled import fill

REFUSED = {
    "arithmetic": "a product or quotient of more than 64 bits",
    "clone": "clones, resubmission, recirculation or digests",
    "digest": "clones, resubmission, recirculation or digests",
    "registers": "other registers between the uses of register 'MyIngress.small'",
    "replicate": "truncation, on device xdp at replicate.p4:18",
    "resubmit": "clones, resubmission, recirculation or digests",
    "stack": "a program with so many branches that the kernel's verifier gives up",
}
TAKES_LONG = "stack"
"""Until the verifier gives up."""
RUN = [stress for stress in STRESSES if stress.name not in REFUSED]
PACKETS = 10_000 if LONG else 200
PORT = 4
LEAST_BYTES = 14
"""Of a frame that leaves: the kernel makes none that is shorter than an Ethernet header."""

pytestmark = pytest.mark.skipif(bool(cannot_run_xdp()), reason=cannot_run_xdp() or "it is there")


@pytest.mark.parametrize("name", sorted(REFUSED if LONG else REFUSED.keys() - {TAKES_LONG}))
def test_what_the_kernel_cannot_do_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedProgramError) as found:
        xdp_target().load(FOLDER / f"{name}.json")
    assert REFUSED[name] in str(found.value)


@pytest.mark.parametrize("stress", RUN, ids=lambda stress: stress.name)
def test_packets_leave_as_those_of_the_c_target(stress: Stress, cache_dir: Path) -> None:
    compare(stress, (FOLDER / f"{stress.name}.json").read_text(), cache_dir)


def test_values_of_128_bits_but_no_products(cache_dir: Path) -> None:
    program = json.loads((FOLDER / "arithmetic.json").read_text())
    for action in program["actions"]:
        action["primitives"] = [
            it
            for it in action["primitives"]
            if not ('"*"' in json.dumps(it) and it["parameters"][0]["value"][1] == "r128")
        ]
    (stress,) = (it for it in STRESSES if it.name == "arithmetic")
    compare(stress, json.dumps(program), cache_dir)


def compare(stress: Stress, text: str, cache_dir: Path) -> None:
    """Random packets to both, one after the other."""
    rng = random.Random(stress.name)
    sent = 0
    with quick([text]) as [built], xdp_target(cache_dir).load(text) as found:
        wanted = built.general
        items = stress.state(rng)
        handles = [fill(pipeline, items) for pipeline in (wanted, found)]
        for _ in range(PACKETS):
            port, frame = rng.choice((PORT, 1)), stress.frame(rng)
            left = wanted.process(port, frame)
            assert all(len(data) >= LEAST_BYTES for _, data in left), frame.hex()
            assert found.process(port, frame) == left, frame.hex()
            sent += len(left)
        counts = [
            [
                *(
                    pipeline.counter(it.name, it.index)
                    for it in stress.counters
                    if isinstance(it, Counter)
                ),
                *(
                    pipeline.direct_counter(item.table, handle)
                    for item, handle in its.items()
                    if counted(pipeline.program.table(item.table))
                ),
            ]
            for pipeline, its in zip((wanted, found), handles, strict=True)
        ]
    assert sent > PACKETS // 4
    assert counts[0] == counts[1]


def counted(table: object) -> bool:
    return bool(getattr(table, "has_direct_counter", False))
