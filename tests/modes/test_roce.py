"""Mode roce has a program, a reference and cases; no job can have it yet, and all say so."""

from __future__ import annotations

import pytest

from ina import modes
from ina.modes import UnknownModeError
from ina.p4 import names
from ina.p4.catalogue import PROGRAMS, Capabilities


def test_hosts_are_not_said_to_speak_it() -> None:
    assert names.ROCE not in modes.names()
    assert names.ROCE in {mode.name for mode in modes.every()}
    with pytest.raises(UnknownModeError, match=r"use pool or shared or stream$"):
        modes.of("sparse")


def test_no_controller_writes_its_rows() -> None:
    mode = modes.of(names.ROCE)
    of_it: list[Capabilities] = [can for it, can in PROGRAMS.items() if it.mode == names.ROCE]
    assert [mode.is_written_to(can) for can in of_it] == [False] * 3
    assert mode.runs_on(program=names.ROCE, shares_slots=False)
    assert not mode.runs_on(program=names.POOL, shares_slots=False)
