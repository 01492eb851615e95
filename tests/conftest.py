"""What all tests need of the process that they run in."""

from __future__ import annotations

import logging
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from tests import selection
from tests.record import Recorder
from tests.tofino.builds import TofinoBuilds
from tests.worlds.loops import pytest_pyfunc_call  # noqa: F401

settings.register_profile("ina", deadline=None)  # examples are slow on a machine that is busy
settings.load_profile("ina")

# Some tests import grpc before ina, which would have set this (see ina/__init__.py).
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# A job started in the background (`make test &`, some CI runners) ignores SIGINT, and so would each
# process that the tests start and interrupt: programs inherit an ignored signal.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_configure(config: pytest.Config) -> None:
    """Tells of the marks that :mod:`tests.selection` knows, and keeps how the run ends."""
    for mark in selection.marks():
        config.addinivalue_line("markers", mark)
    if not hasattr(config, "workerinput"):  # no worker of xdist
        config.pluginmanager.register(Recorder(config), "ina-record")


def pytest_sessionstart(session: pytest.Session) -> None:
    """The fork server's start, ten seconds, is no test's: it imports while tests are collected.

    With ``INA_FORKS_READY`` it is waited for. A process that runs tests by hand starts it when one
    asks.
    """
    if session.config.rootpath != Path(__file__).parents[1]:
        return  # another project's tests, with a copy of this file: tests/test_ci.py
    if hasattr(session.config, "workerinput") or "INA_FORKS_READY" in os.environ:
        from tests.worlds.processes import forks

        forks.begin()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes out what this machine cannot run, and what this run has no time for."""
    selection.select(config, items)


@pytest.hookimpl(optionalhook=True)  # of xdist: only its workers collect
def pytest_testnodedown(node: Any) -> None:
    """What a worker has not collected; all collect alike."""
    told = getattr(node, "workeroutput", {}).get("not_run", {})
    node.config.stash.setdefault(selection.NOT_RUN, {}).update(told)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Says once what was not collected."""
    lines = list(selection.summary(config.stash.get(selection.NOT_RUN, {})))
    if lines:
        terminalreporter.section("not run here")
        for line in lines:
            terminalreporter.line(line)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """For .ci/run_tests.py, which sees only make's exit status: whether the run came to its end."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["not_run"] = session.config.stash.get(selection.NOT_RUN, {})
    cache = getattr(session.config, "cache", None)
    if cache is not None and not hasattr(session.config, "workerinput"):  # no worker of xdist
        cache.set("ina/exit_status", int(exitstatus))


@pytest.fixture(autouse=True)
def logging_is_left_as_it_was() -> Iterator[None]:
    """Else a later test of this process reads an empty log, and nobody sees whose doing it is."""
    yield
    logger = logging.getLogger("ina")
    left = (logger.propagate, logger.level, logging.root.manager.disable)
    disabled = [
        name
        for name, it in logging.root.manager.loggerDict.items()
        if name.split(".")[0] == "ina" and isinstance(it, logging.Logger) and it.disabled
    ]
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
    logging.disable(logging.NOTSET)
    for name in disabled:
        logging.getLogger(name).disabled = False
    assert (left, disabled) == ((True, logging.NOTSET, logging.NOTSET), [])


@pytest.fixture(scope="session")
def cache_dir(pytestconfig: pytest.Config) -> Path:
    """Compiled pipelines, kept from run to run: each is named by all that it depends on."""
    if shutil.which("cc") is None:
        pytest.skip("no C compiler (cc)")
    return pytestconfig.rootpath / ".pytest_cache" / "d" / "pipelines"


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
