"""Why a session failed is said once: raised to whoever waits, or logged if nobody has."""

from __future__ import annotations

import logging
from typing import Any
from unittest.mock import MagicMock

import pytest

from ina.host.errors import WorkerLostError
from ina.host.member.latch import FailureLatch
from ina.host.thread_driver import ThreadDriver

LOST = WorkerLostError("rank 1 has left")


DRIVER = ThreadDriver("test")


def latch() -> FailureLatch:
    transport: Any = MagicMock()
    ticket: Any = MagicMock()
    return FailureLatch(ticket, transport, DRIVER)


@pytest.mark.parametrize(("is_raised", "lines"), [(True, []), (False, ["rank 1 has left"])])
def test_a_failure_is_logged_only_if_nobody_was_told(
    is_raised: bool, lines: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    failed = latch()
    with caplog.at_level(logging.WARNING, "ina.host"):
        DRIVER.run(failed.fail(LOST))
        assert str(DRIVER.run(failed.error())) == "rank 1 has left"  # a look tells nobody
        if is_raised:
            assert str(DRIVER.run(failed.told())) == "rank 1 has left"
        failed.close()
    assert caplog.messages == lines
