"""The kernel that machines boot."""

from __future__ import annotations

import pytest

from tests.worlds.machines.kernel import Kernel, NoKernelError, kernel
from tests.worlds.machines.rack import why_not


@pytest.fixture(scope="session")
def linux() -> Kernel:
    if why := why_not():
        pytest.skip(why)
    try:
        return kernel()
    except NoKernelError as error:
        pytest.skip(str(error))
