"""``ina doctor`` on Tofino's parts: what is there, and why the client cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from ina.doctor.finding import Finding
from ina.doctor.machine import examine


def finding(name: str) -> Finding:
    (found,) = [found for found in examine() if found.name == name]
    return found


def test_an_sde_whose_client_works(sde: Path) -> None:
    found = finding("BFRuntime client")
    assert found.verdict == "ok"
    assert found.found.endswith("tofino/bfrt_grpc/client.py")
    assert finding("Tofino SDE").found == str(sde)


def test_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SDE_INSTALL", raising=False)
    found = finding("BFRuntime client")
    assert (found.verdict, found.found) == ("absent", "")
    assert "set SDE_INSTALL to the SDE's install folder" in found.get
    monkeypatch.setenv("SDE_INSTALL", str(tmp_path))
    assert "is that an SDE" in finding("BFRuntime client").get


def test_compiler_and_assembler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("p4c-barefoot", "bfas"):
        tool = tmp_path / name
        tool.write_text("#!/bin/sh\n")
        tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert finding("Tofino compiler").found == str(tmp_path / "p4c-barefoot")
    assert finding("Tofino assembler").found == str(tmp_path / "bfas")


def test_compiler_and_assembler_that_variables_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, name in (("INA_P4C_TOFINO", "my-p4c"), ("INA_BFAS", "my-bfas")):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
        monkeypatch.setenv(variable, str(tmp_path / name))
    assert finding("Tofino compiler").found == str(tmp_path / "my-p4c")
    assert finding("Tofino assembler").found == str(tmp_path / "my-bfas")
