"""What the catalogue says of trees is what the programs have."""

from __future__ import annotations

import pytest

from ina.files import root
from ina.p4.catalogue import PROGRAMS, V1MODEL, ProgramId, find


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
def test_a_program_has_the_action_for_inner_nodes_or_says_that_it_has_not(
    program: ProgramId,
) -> None:
    if program.target == V1MODEL:
        sources = find(program).p4info.read_text()
    else:
        folder = root() / "tofino"
        sources = "".join(path.read_text() for path in sorted(folder.rglob("*.p4")))
    assert PROGRAMS[program].trees == ("admit_inner_job" in sources)
