"""The compiler driver: reproducible, and typed errors of one line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ina.p4 import compiled
from ina.p4.builds import all_builds
from ina.p4.compile import compile_build, compile_program, find_p4c, p4c_version
from ina.p4.errors import P4cMissingError, P4CompileError
from ina.p4.info import read_p4info
from ina.p4.programs import MANIFEST

MINIMAL = """
#include <core.p4>
#include <v1model.p4>
header byte_h { bit<8> value; }
struct headers_t { byte_h byte; }
struct metadata_t {}
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(h.byte); transition accept; }
}
control V(inout headers_t h, inout metadata_t m) { apply {} }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    apply { s.egress_spec = PORT; }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers_t h) { apply { p.emit(h.byte); } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


@pytest.mark.p4c
@pytest.mark.parametrize(("mode", "values"), all_builds())
def test_compiling_again_gives_what_is_checked_in(values: int, mode: str, tmp_path: Path) -> None:
    json_file, p4info = compile_build(values, tmp_path, mode)
    checked_in = compiled(values, mode)
    made_by = json.loads(MANIFEST.read_text())["p4c_version"]
    if p4c_version() == made_by:
        assert json_file.read_bytes() == checked_in.bmv2_json.read_bytes()
        assert p4info.read_bytes() == checked_in.p4info.read_bytes()
    else:  # another compiler may lay the JSON out otherwise; the control plane must not notice
        assert read_p4info(p4info) == read_p4info(checked_in.p4info)


@pytest.mark.p4c
def test_any_program_compiles_and_its_defines_count(tmp_path: Path) -> None:
    source = tmp_path / "minimal.p4"
    source.write_text(MINIMAL)
    json_file, p4info = compile_program(source, tmp_path / "out", "minimal", {"PORT": "7"})
    program = json.loads(json_file.read_text())
    assert program["program"] == "minimal.p4"
    assert "0x0007" in json_file.read_text()
    assert p4info.is_file()


@pytest.mark.p4c
def test_an_error_of_the_program_is_one_line_with_its_place(tmp_path: Path) -> None:
    source = tmp_path / "broken.p4"
    source.write_text(MINIMAL.replace("s.egress_spec = PORT;", "s.no_such_field = 1;"))
    with pytest.raises(
        P4CompileError, match=r"^broken\.p4\(12\): .*error: .*no_such_field"
    ) as caught:
        compile_program(source, tmp_path, "broken")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "broken.json").exists()


@pytest.mark.p4c
def test_a_missing_source_is_named(tmp_path: Path) -> None:
    with pytest.raises(P4CompileError, match=r"nowhere\.p4: no such P4 program"):
        compile_program(tmp_path / "nowhere.p4", tmp_path, "nowhere")


@pytest.mark.p4c
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    source = tmp_path / "minimal.p4"
    source.write_text(MINIMAL)
    with pytest.raises(P4CompileError, match=r"cannot write .*minimal\.p4: "):
        compile_program(source, source, "minimal", {"PORT": "7"})


def test_without_a_compiler_the_message_says_how_to_get_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("INA_P4C", raising=False)
    with pytest.raises(P4cMissingError, match="install p4c"):
        find_p4c()


def test_a_wrong_ina_p4c_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INA_P4C", str(tmp_path / "none"))
    with pytest.raises(P4cMissingError, match=r"INA_P4C=.*none is not an executable file"):
        find_p4c()


def test_ina_p4c_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = tmp_path / "my-p4c"
    mine.write_text("#!/bin/sh\necho 'Version 9.9 (mine)'\n")
    mine.chmod(0o755)
    monkeypatch.setenv("INA_P4C", str(mine))
    assert find_p4c() == mine
    assert p4c_version() == "9.9"
