"""Programs as others write them: the main path does what the general one does, and what is right.

Each is the smallest that one pass made wrong, with the packet that showed it. What is right is what
the P4 says and, for ``packet_length``, what BMv2's add_header and remove_header count.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.switch.foreign_case import Case, run
from tests.switch.foreign_like import FOR_MUTANTS, LIKE
from tests.switch.foreign_programs import CASES

CASES_HERE = [
    *(pytest.param(case, id=name) for name, case in (CASES | LIKE).items()),
    *(pytest.param(case, id=name, marks=pytest.mark.long) for name, case in FOR_MUTANTS.items()),
]


@pytest.mark.parametrize("case", CASES_HERE)
def test_main_and_general_path_do_what_is_right(case: Case, cache_dir: Path) -> None:
    assert run(case, cache_dir) == case.right
    assert run(case, cache_dir, main_path=False) == case.right
