from __future__ import annotations

import pytest

from ina.p4.compile import find_p4c
from ina.p4.errors import P4cMissingError


@pytest.fixture(scope="session")
def p4c() -> None:
    """Skips a test where there is no P4 compiler, and says what to install."""
    try:
        find_p4c()
    except P4cMissingError as missing:
        pytest.skip(str(missing))
