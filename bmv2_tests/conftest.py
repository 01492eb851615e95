"""Which switches the network tests run on."""

from __future__ import annotations

import os

import pytest

from bmv2_tests.debian import why_no_bmv2, why_not

# Before a test imports grpc: see ina/__init__.py.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def pytest_report_header() -> list[str]:
    bmv2 = why_no_bmv2()
    return [
        f"mininet: {why_not() or 'ok'}",
        f"bmv2: {bmv2 + '; the soft switch stands in' if bmv2 else 'ok'}",
    ]


@pytest.fixture(params=["soft", "bmv2"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which switch stands in the topology."""
    if request.param == "bmv2":
        reason = why_no_bmv2()
        if reason is not None:
            pytest.skip(reason)
    chosen: str = request.param
    return chosen
