"""What all tests need of the process that they run in."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.tofino.builds import TofinoBuilds

# Some tests import grpc before ina, which would have set this (see ina/__init__.py).
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A job started in the background (`make test &`, some CI runners) ignores SIGINT, and so would each
# process that the tests start and interrupt: programs inherit an ignored signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """For .ci/run_tests.py, which sees only make's exit status: whether the run came to its end."""
    cache = getattr(session.config, "cache", None)
    if cache is not None and not hasattr(session.config, "workerinput"):  # no worker of xdist
        cache.set("ina/exit_status", int(exitstatus))


@pytest.fixture(scope="session")
def tofino_builds(tmp_path_factory: pytest.TempPathFactory) -> TofinoBuilds:
    """The Tofino twin, compiled when a test first asks for it."""
    return TofinoBuilds.of_session(tmp_path_factory.getbasetemp())


@pytest.fixture
def two_cores() -> Iterator[tuple[int, int]]:
    """The only ones on which this thread, and threads that it starts, may run."""
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        pytest.skip("needs two cores on which this process may run (taskset, cpuset)")
    first, second = sorted(before)[:2]
    os.sched_setaffinity(0, {first, second})
    yield first, second
    os.sched_setaffinity(0, before)
