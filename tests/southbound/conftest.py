"""A fake SDE, found as the real one is, and a fake Tofino that runs the pool program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ina.p4 import compiled
from tests.southbound.schema import from_p4info
from tests.worlds.fakes.tofino import FakeTofino


def forget_client() -> None:
    """So that the next test imports its own."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "bfrt_grpc"]:
        del sys.modules[name]


def make_sde(root: Path, client: str) -> Path:
    """An install folder whose client has this text."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    package = root / "lib" / version / "site-packages" / "tofino" / "bfrt_grpc"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "client.py").write_text(client)
    return root


@pytest.fixture
def sde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """``SDE_INSTALL`` names an SDE whose client is the fake."""
    root = make_sde(tmp_path / "sde", "from tests.worlds.fakes.tofino_client import *\n")
    monkeypatch.setenv("SDE_INSTALL", str(root))
    monkeypatch.setattr(sys, "path", list(sys.path))
    forget_client()
    yield root
    forget_client()


@pytest.fixture
def tofino(sde: Path) -> Iterator[FakeTofino]:
    """A switch whose SDE has loaded the program."""
    server = FakeTofino(from_p4info(compiled(64).p4info))
    yield server
    server.close()
