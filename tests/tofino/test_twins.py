"""The Tofino program is the twin of v1model's: same controls, same order, nothing written twice.

That both have the same tables, keys and actions: tests/southbound/test_compiled_schema.py.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ina.p4 import names
from ina.p4.programs import P4_DIR

TOFINO = P4_DIR.parent.parent / "tofino"
V1MODEL = P4_DIR / "v1model"
SHARED_CONTROLS = ("slots", "contribution", "accumulate")
RUN_LINES = 6


def code(text: str) -> str:
    """P4 without comments."""
    return re.sub(r"//[^\n]*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.S))


def applied(source: str, control: str) -> list[str]:
    """The controls that a control of the top program applies, in order."""
    body = code(source).partition(f"control {control}(")[2].partition("\ncontrol ")[0]
    return re.findall(r"\b(\w+)\.apply\(", body.partition("apply {")[2])


def runs(source: str) -> set[tuple[str, ...]]:
    """Every run of lines that is too long to stand in two files; not #include lines."""
    lines = [line.strip() for line in source.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#include")]
    return {tuple(lines[at : at + RUN_LINES]) for at in range(len(lines) - RUN_LINES + 1)}


@pytest.mark.parametrize("mode", names.MODES_ON_CHIPS)
@pytest.mark.parametrize("control", ["PoolIngress", "PoolEgress"])
def test_both_top_programs_apply_the_same_controls_in_the_same_order(
    control: str, mode: str
) -> None:
    ours, theirs = ((d / f"{mode}.p4").read_text() for d in (V1MODEL, TOFINO))
    order = applied(ours, control)
    assert len(order) >= 2
    assert applied(theirs, control) == order


def test_another_order_shows() -> None:
    source = (TOFINO / "pool.p4").read_text()
    swapped = source.replace("accumulate.apply(hdr, meta);", "@").replace(
        "distribute.apply(", "accumulate.apply("
    )
    assert "@" in swapped
    swapped = swapped.replace("@", "distribute.apply(hdr);")
    assert applied(swapped, "PoolIngress") != applied(source, "PoolIngress")


OF_OTHER_MODES = ("stream", "expand", "last_value", "parse_stream", "roce", "icrc", "ring")
NOT_ON_CHIPS = {"transparent.p4", "udp_encap.p4"} | {
    path.name for path in V1MODEL.glob("*.p4") if path.name.startswith(OF_OTHER_MODES)
}
"""Of the programs whose modes chips have not; chips have one encapsulation alone."""


def test_the_files_have_the_names_of_v1models() -> None:
    v1model = {path.name for path in V1MODEL.glob("*.p4")}
    assert v1model - NOT_ON_CHIPS <= {path.name for path in TOFINO.glob("*.p4")}
    assert v1model >= NOT_ON_CHIPS
    assert set(names.MODES) - set(names.MODES_ON_CHIPS) == {
        *(names.STREAM, names.ROCE, names.TRANSPARENT)
    }


@pytest.mark.parametrize("mode", names.MODES_ON_CHIPS)
def test_stateful_controls_come_from_the_shared_folder(mode: str) -> None:
    source = (TOFINO / f"{mode}.p4").read_text()
    if mode == names.SHARED:  # whose Claims chooses by tables between what stands in that folder
        source += (TOFINO / "claims.p4").read_text()
        source = source.replace("shared/claim_state.p4", "shared/slots.p4")
    for name in SHARED_CONTROLS:
        assert f'#include "../ina/p4/shared/{name}.p4"' in source
    for path in TOFINO.glob("*.p4"):
        for name in SHARED_CONTROLS:
            assert f"control {name.capitalize()}(" not in path.read_text(), path.name
    # Registers are made by the shim's macros and nowhere else.
    others = [path for path in TOFINO.glob("*.p4") if path.name != "state.p4"]
    assert not [p.name for p in others if re.search(r"\bRegister(Action)?\d?<", p.read_text())]


def test_no_control_stands_twice() -> None:
    ours = set().union(*(runs(path.read_text()) for path in P4_DIR.rglob("*.p4")))
    for path in sorted(TOFINO.rglob("*.p4")):
        both = ours & runs(path.read_text())
        assert not both, f"{path.name}: {sorted(both)[0]}"


def test_a_copied_run_shows(tmp_path: Path) -> None:
    text = (V1MODEL / "admission.p4").read_text()
    assert runs(text) & runs((TOFINO / "admission.p4").read_text() + text)
