"""Programs as others write them: the main path does what the general one does, and what is right.

Each is the smallest that one pass made wrong, with the packet that showed it. What is right is what
the P4 says and, for ``packet_length``, what BMv2's add_header and remove_header count.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.switch.foreign_case import leaves, run
from tests.switch.foreign_hashes import HASHED
from tests.switch.foreign_like import FOR_MUTANTS, LIKE
from tests.switch.foreign_programs import CASES
from tests.switch.quick import quick

USUAL = CASES | LIKE | HASHED


def test_both_paths_do_what_is_right() -> None:
    """All in one file, for compiling them one by one is what takes long."""
    with quick([case.program.json() for case in USUAL.values()]) as programs:
        for (name, case), program in zip(USUAL.items(), programs, strict=True):
            assert leaves(case, program.main) == case.right, name
            assert leaves(case, program.general) == case.right, f"{name}, by the general path"


@pytest.mark.long
@pytest.mark.parametrize("name", USUAL | FOR_MUTANTS)
def test_both_paths_do_what_is_right_as_they_ship(name: str, cache_dir: Path) -> None:
    case = (USUAL | FOR_MUTANTS)[name]
    assert run(case, cache_dir) == case.right
    assert run(case, cache_dir, main_path=False) == case.right
