"""The Tofino twin's own controls on the soft switch: what its compilers cannot show, that it sums.

``stand_ins/*.p4`` stand for what v1model has not: Tofino's registers, parsers and metadata. Tables,
actions and conditions are those of ``tofino/``. What runs is not what p4c-barefoot makes of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from ina.p4 import names
from ina.p4.compile import compile_program
from ina.p4.programs import P4_DIR, build_defines
from ina.p4.tofino import tofino_source
from ina.tables.values import AnyItem, Count, Counter, CounterRef, Entry
from ina.testing.frames import PortFrame
from ina.testing.soft_device import SoftDevice
from tests.conformance.mutants import Built

STAND_INS = Path(__file__).parent / "stand_ins"
CHIPS = {"tofino": 1, "tofino2": 2}
"""As __TARGET_TOFINO__ says it."""
RECIRCULATION_PORT = 68
UNCOUNTED = ("dmac", "ipv4_lpm")
"""Tables without a direct counter on Tofino (docs/p4_guide.md): the cases read one."""
_PIPELINE = "Pipeline(PoolParser()"  # what stands there and behind it, frame.p4 has for v1model


def compile_emulated(
    target: str,
    values: int,
    folder: Path,
    bug: tuple[str, str, str] | None = None,
    mode: str = names.POOL,
) -> Built:
    """Compiles a mode's twin for v1model, with the names that its own compiler gives.

    `bug`: a file of the twin, a text in it, and what stands in its place.
    """
    shutil.copytree(P4_DIR / "shared", folder / "ina" / "p4" / "shared")
    top = tofino_source(mode)
    source = shutil.copytree(top.parent, folder / "tofino") / top.name
    if bug is not None:
        file, right, wrong = bug
        text = (source.parent / file).read_text()
        assert text.count(right) == 1, f"{file} has changed: write the bug anew"
        (source.parent / file).write_text(text.replace(right, wrong))
    for stand_in in STAND_INS.glob("*.p4"):
        shutil.copy(stand_in, source.parent)
    shutil.copy(source.parent / "tna.p4", source.parent / "t2na.p4")
    text = source.read_text().replace("<tna.p4>", '"tna.p4"').replace("<t2na.p4>", '"t2na.p4"')
    controls, found, _ = text.partition(_PIPELINE)
    assert found, f"{top.name} ends otherwise now"
    source.write_text(f'{controls}#include "frame.p4"\n')
    forwarding = source.parent / "forwarding.p4"
    text = forwarding.read_text()
    for table in UNCOUNTED:
        head = f"    table {table} {{\n"
        assert text.count(head) == 1, f"forwarding.p4 has no table {table} now"
        counted = (
            f"    DIRECT_COUNTER({table}_counter)\n{head}        counters = {table}_counter;\n"
        )
        text = text.replace(head, counted)
    forwarding.write_text(text)
    defines = build_defines(values) | {
        "__TARGET_TOFINO__": str(CHIPS[target]),
        "CPU_PORT": str(names.CPU_PORT),
        "US_TO_CLOCK_BITS": "0",
    }
    bmv2_json, p4info = compile_program(source, folder / "out", target, defines, root=folder)
    for made in (bmv2_json, p4info):
        text = made.read_text()
        for gress in ("Ingress", "Egress"):
            text = text.replace(f"Frame{gress}.pool.", f"Pool{gress}.")
        made.write_text(text)
    return Built(p4info, bmv2_json)


class EmulatedTofino(SoftDevice):
    """What leaves by the recirculation port comes in by it. Nobody is evicted."""

    def process(self, frames: Sequence[PortFrame]) -> list[PortFrame]:
        """Hands frames to the pipeline, one after the other, with their second passes."""
        left: list[PortFrame] = []
        for frame in frames:
            for port, data in super().process([frame]):
                again = port == RECIRCULATION_PORT
                left += super().process([(port, data)]) if again else [(port, data)]
        return left

    def insert(self, items: Sequence[AnyItem]) -> None:
        """Writes what the twin has a table for."""
        super().insert(known(items))

    def delete(self, items: Sequence[AnyItem]) -> None:
        """Takes off what the twin has a table for."""
        super().delete(known(items))

    def counts(self, refs: Sequence[CounterRef]) -> list[Count]:
        """0 evictions, and what the twin has counted."""
        counted = iter(super().counts([ref for ref in refs if not of_evictions(ref)]))
        return [Count(0, 0) if of_evictions(ref) else next(counted) for ref in refs]


def of_evictions(ref: CounterRef) -> bool:
    """Whether the twin has no such counter."""
    return isinstance(ref, Counter) and ref.name == names.JOB_EVICTIONS


def known(items: Sequence[AnyItem]) -> list[AnyItem]:
    """Without what a controller says of owners that are evicted: the twin evicts nobody."""
    return [item for item in items if not (isinstance(item, Entry) and item.table == names.OWNERS)]
