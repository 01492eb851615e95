"""The Tofino twins, compiled once a session for each chip: placing one takes a minute of CPU."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest
from filelock import FileLock

from ina.p4 import names
from ina.p4.errors import P4cDefectError, P4CompileError
from ina.p4.programs import build_defines
from ina.p4.tofino import (
    P4C_TOFINO,
    TARGETS,
    TofinoBuild,
    compile_tofino,
    find_tool,
    tofino_source,
)

BUILD_DEADLINE_S = 2400.0
"""For a test that may compile, or wait for another worker of xdist that does."""


def need_compiler() -> None:
    """Skips the test where the Tofino compiler is not."""
    if find_tool(P4C_TOFINO, "INA_P4C_TOFINO") is None:
        pytest.skip(f"{P4C_TOFINO} is not on PATH: build p4c with its Tofino option")


def binary_of(build: TofinoBuild) -> Path:
    """The chip's binary; skips the test where the assembler is not."""
    if build.binary is None:
        pytest.skip("bfas is not on PATH: build p4c with its Tofino option")
    return build.binary


class TofinoBuilds:
    """The builds of one session, in a folder that all its xdist workers share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of_session(cls, base: Path) -> TofinoBuilds:
        """`base`: pytest's base folder, which each worker of xdist has within the session's."""
        common = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
        folder = common / "tofino_builds"
        folder.mkdir(exist_ok=True)
        return cls(folder)

    def of(self, target: str, mode: str = names.POOL) -> TofinoBuild:
        """A mode's build for this chip; a failure to compile is remembered too."""
        need_compiler()
        done = self._folder / f"{mode}_{target}.pickle"
        with FileLock(done.with_suffix(".lock"), timeout=BUILD_DEADLINE_S):
            if not done.exists():
                partial = done.with_suffix(".partial")
                partial.write_bytes(pickle.dumps(self._compile(target, mode)))
                partial.replace(done)
            outcome = pickle.loads(done.read_bytes())
        if isinstance(outcome, P4cDefectError):
            pytest.skip(str(outcome))
        if isinstance(outcome, P4CompileError):
            raise outcome
        assert isinstance(outcome, TofinoBuild)
        return outcome

    def _compile(self, target: str, mode: str) -> TofinoBuild | P4CompileError:
        chip, folder = TARGETS[target], self._folder / f"{mode}_{target}"
        try:
            return compile_tofino(tofino_source(mode), chip, folder, build_defines(chip.values))
        except P4CompileError as error:
            return error
