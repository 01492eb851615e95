"""Compiling for a Tofino, and what the report says; with p4c's Tofino back end where it is."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ina.cli.main import app
from ina.p4.errors import P4cDefectError, P4cMissingError, P4CompileError, P4InfoError
from ina.p4.tofino import TARGETS, compile_tofino
from ina.p4.tofino_page import page
from ina.p4.tofino_report import COMPILER_MADE, Budget, control_of, read_report

needs_compiler = pytest.mark.skipif(
    shutil.which("p4c-barefoot") is None,
    reason="needs p4c-barefoot: p4c built with its Tofino back end",
)

PROGRAM = """
#include <core.p4>
#if __TARGET_TOFINO__ == 2
#include <t2na.p4>
#else
#include <tna.p4>
#endif
header number_h { bit<32> index; bit<32> sum; }
struct headers_t { number_h number; }
struct metadata_t {}
parser InParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                out ingress_intrinsic_metadata_t ig) {
    state start {
        packet.extract(ig);
        packet.advance(PORT_METADATA_SIZE);
        packet.extract(hdr.number);
        transition accept;
    }
}
control Adder(inout headers_t hdr) {
    Register<bit<32>, bit<10>>(1024) total;
    RegisterAction<bit<32>, bit<10>, bit<32>>(total) add = {
        void apply(inout bit<32> value, out bit<32> rv) {
            value = value + hdr.number.sum;
            rv = value;
        }
    };
    apply { hdr.number.sum = add.execute(hdr.number.index[9:0]); }
}
control Ingress(inout headers_t hdr, inout metadata_t meta, in ingress_intrinsic_metadata_t ig,
                in ingress_intrinsic_metadata_from_parser_t ig_prsr,
                inout ingress_intrinsic_metadata_for_deparser_t ig_dprsr,
                inout ingress_intrinsic_metadata_for_tm_t ig_tm) {
    Adder() adder;
    apply { adder.apply(hdr); ig_tm.ucast_egress_port = ig.ingress_port; }
}
control InDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                   in ingress_intrinsic_metadata_for_deparser_t ig_dprsr) {
    apply { packet.emit(hdr); }
}
parser OutParser(packet_in packet, out headers_t hdr, out metadata_t meta,
                 out egress_intrinsic_metadata_t eg) {
    state start { packet.extract(eg); transition accept; }
}
control Egress(inout headers_t hdr, inout metadata_t meta, in egress_intrinsic_metadata_t eg,
               in egress_intrinsic_metadata_from_parser_t eg_prsr,
               inout egress_intrinsic_metadata_for_deparser_t eg_dprsr,
               inout egress_intrinsic_metadata_for_output_port_t eg_oport) {
    apply {}
}
control OutDeparser(packet_out packet, inout headers_t hdr, in metadata_t meta,
                    in egress_intrinsic_metadata_for_deparser_t eg_dprsr) {
    apply { packet.emit(hdr); }
}
Pipeline(InParser(), Ingress(), InDeparser(), OutParser(), Egress(), OutDeparser()) pipe;
Switch(pipe) main;
"""


def write_logs(directory: Path, alus: int = 1, last_stage: int = 2) -> Path:
    """Logs of a build with `alus` stateful ALUs in its first stage and a table in its last."""

    def stage(number: int, owner: str, alus: int) -> dict[str, Any]:
        uses = [{"used_by": owner, "used_for": "x"}]
        meters = [{"row": row, "usages": uses} for row in range(alus)]
        srams = [{"row": 0, "column": 1, "usages": uses}]
        return {
            "stage_number": number,
            "meter_alus": {"nAlus": 4, "meters": meters},
            "rams": {"nRows": 8, "nColumns": 10, "srams": srams},
            "tcams": {"nRows": 12, "nColumns": 2, "tcams": []},
            "map_rams": {"nRows": 8, "nUnits": 6, "maprams": []},
            "gateways": {"nRows": 8, "nUnits": 2, "gateways": []},
            "logical_tables": {"size": 16, "ids": [{"id": 0, "table_name": owner}]},
        }  # fmt: skip

    empty = stage(1, "unused", 0)
    empty["logical_tables"]["ids"] = []
    directory.mkdir(exist_ok=True)
    resources = {
        "mau": {
            "nStages": 12,
            "mau_stages": [
                stage(0, "PoolIngress.slots.own", alus),
                empty,
                stage(last_stage, "tbl_pool7", 0),
            ],
        },
        "parser": {"parsers": [{"gress": "ingress", "nStates": 256, "states": [{}, {}]}]},
        "phv_containers": {"normal": [{"width": 32, "units": 64, "addresses": []}]},
    }
    container = {"container_type": "normal", "bit_width": 32, "phv_number": 3, "slices": [{}]}
    phv = {"containers": [container, dict(container), container | {"slices": [], "phv_number": 4}]}
    (directory / "resources.json").write_text(json.dumps({"resources": resources}))
    (directory / "phv.json").write_text(json.dumps(phv))
    return directory


def test_report_counts_by_control(tmp_path: Path) -> None:
    report = read_report(write_logs(tmp_path, alus=3), "tofino")
    assert set(report.controls) == {"slots", COMPILER_MADE}
    assert report.controls["slots"].blocks["stateful_alus"] == 3
    assert report.controls["slots"].stages == {0}
    assert report.totals["stateful_alus"] == Budget(3, 48)
    assert report.totals["sram_blocks"] == Budget(2, 960)
    assert report.totals["stages"] == Budget(3, 12)
    assert report.totals["phv_normal_32_bit"] == Budget(1, 64)
    assert report.totals["parser_states_ingress"] == Budget(2, 256)
    assert report.exceeded() == []


def test_report_names_what_is_exceeded(tmp_path: Path) -> None:
    assert read_report(write_logs(tmp_path, last_stage=12), "tofino").exceeded() == ["stages"]
    assert read_report(write_logs(tmp_path, alus=49), "tofino").exceeded() == ["stateful_alus"]


@pytest.mark.parametrize(
    ("name", "control"),
    [
        ("PoolIngress.admission.jobs", "admission"),
        ("PoolIngress.admission.jobs-gateway", "admission"),
        ("PoolIngress.drop", "PoolIngress"),
        ("tbl_pool12", COMPILER_MADE),
        ("cond-15", COMPILER_MADE),
    ],
)
def test_control_of(name: str, control: str) -> None:
    assert control_of(name) == control


def test_page(tmp_path: Path) -> None:
    text = page([read_report(write_logs(tmp_path), "tofino")], "f00")
    assert "| stages | 3 | 12 | 25 % |" in text
    assert "| slots | 0 | 1 | 1 | 0 | 0 | 0 | 1 |" in text
    assert "`f00`" in text


@pytest.mark.parametrize("spoil", ["missing", "no JSON", "[]", "{}"])
def test_bad_logs(tmp_path: Path, spoil: str) -> None:
    logs = write_logs(tmp_path)
    if spoil == "missing":
        (logs / "phv.json").unlink()
    else:
        (logs / "resources.json").write_text(spoil)
    with pytest.raises(P4InfoError, match=r"phv\.json|resources\.json|not the logs"):
        read_report(logs, "tofino")


def test_without_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("INA_P4C_TOFINO", raising=False)
    with pytest.raises(P4cMissingError, match="p4c-barefoot is not on PATH"):
        compile_tofino(tmp_path / "a.p4", TARGETS["tofino"], tmp_path / "out")


def test_report_needs_a_tofino(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["p4", "compile", "--report", str(tmp_path / "r.md")])
    assert done.exit_code != 0


def fake_compiler(directory: Path, script: str, name: str = "p4c-barefoot") -> Path:
    compiler = directory / name
    compiler.write_text(f"#!/bin/sh\n{script}\n")
    compiler.chmod(0o755)
    return compiler


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo 'a.p4(3): [--Werror] error: no such thing' >&2; exit 1", "no such thing"),
        ("exit 0", "wrote no assembly"),
    ],
)
def test_refusals(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, says: str) -> None:
    monkeypatch.setenv("INA_P4C_TOFINO", str(fake_compiler(tmp_path, script)))
    source = tmp_path / "a.p4"
    with pytest.raises(P4CompileError, match="no such P4 program"):
        compile_tofino(source, TARGETS["tofino"], tmp_path / "out")
    source.write_text(PROGRAM)
    with pytest.raises(P4CompileError, match=says):
        compile_tofino(source, TARGETS["tofino"], tmp_path / "out")


def test_a_compiler_that_loses_parser_matches_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    p4c = 'while [ "$1" != -o ]; do shift; done; mkdir -p "$2/pipe"; touch "$2/pipe/a.bfa"'
    lost = "a.bfa:9: warning: Can't match parser state due to previous match"
    bfas = f'while [ "$1" != -o ]; do shift; done; touch "$2/tofino.bin"; echo "${{LOST:+{lost}}}"'
    monkeypatch.setenv("INA_P4C_TOFINO", str(fake_compiler(tmp_path, p4c)))
    monkeypatch.setenv("INA_BFAS", str(fake_compiler(tmp_path, bfas, "bfas")))
    source = tmp_path / "a.p4"
    source.write_text(PROGRAM)
    assert compile_tofino(source, TARGETS["tofino"], tmp_path / "out").binary is not None
    monkeypatch.setenv("LOST", "yes")
    with pytest.raises(P4cDefectError, match="pull request 5753"):
        compile_tofino(source, TARGETS["tofino"], tmp_path / "out")


@pytest.mark.parametrize(
    ("own_source", "options", "define"),
    [
        (False, [], "-DVALUES_PER_PACKET=64"),
        (False, ["--values", "32"], "-DVALUES_PER_PACKET=32"),
        (True, [], ""),
        (True, ["--values", "32"], "-DVALUES_PER_PACKET=32"),
    ],
)
def test_values_reach_the_compiler(
    own_source: bool,
    options: list[str],
    define: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    echo = fake_compiler(
        tmp_path, 'for word; do case $word in -D*) echo "$word"; esac; done; exit 1'
    )
    monkeypatch.setenv("INA_P4C_TOFINO", str(echo))
    source = tmp_path / "adder.p4"
    source.write_text(PROGRAM)
    command = ["p4", "compile", *([str(source)] if own_source else []), *options]
    done = CliRunner().invoke(app, [*command, "--target", "tofino", "--out", str(tmp_path)])
    assert isinstance(done.exception, P4CompileError)
    said = str(done.exception).rpartition("p4c-barefoot: ")[2]
    assert said == (define or "exit status 1")


@pytest.mark.parametrize("options", [[], ["--mode", "shared"]])
def test_mode_says_which_program(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    echo = fake_compiler(
        tmp_path, 'for word; do case $word in *.p4) echo "${word##*/}"; esac; done; exit 1'
    )
    monkeypatch.setenv("INA_P4C_TOFINO", str(echo))
    command = ["p4", "compile", *options, "--target", "tofino2", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, command)
    assert isinstance(done.exception, P4CompileError)
    assert str(done.exception).endswith("shared.p4" if options else "pool.p4")
    done = CliRunner().invoke(app, ["p4", "compile", "--mode", "sparse", "--target", "tofino"])
    assert "there are programs for pool and shared" in str(done.exception)


@needs_compiler
@pytest.mark.parametrize("target", sorted(TARGETS))
def test_compiles(tmp_path: Path, target: str) -> None:
    source, page_file = tmp_path / "adder.p4", tmp_path / "report.md"
    source.write_text(PROGRAM)
    command = ["p4", "compile", str(source), "--target", target, "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*command, "--report", str(page_file), "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["totals"]["stateful_alus"]["used"] == 1
    assert document["controls"]["adder"]["stateful_alus"] == 1
    assert document["assembled"] is (shutil.which("bfas") is not None)
    assert f"## {target}" in page_file.read_text()
    for path in document["files"]:
        assert Path(path).stat().st_size > 0


@needs_compiler
def test_compiler_refuses(tmp_path: Path) -> None:
    source = tmp_path / "adder.p4"
    source.write_text(PROGRAM.replace("value + hdr.number.sum", "value + nothing"))
    with pytest.raises(P4CompileError, match="nothing"):
        compile_tofino(source, TARGETS["tofino"], tmp_path / "out")


def test_without_its_files_an_ina_lacks_only_what_needs_them() -> None:
    """As where only the package was copied: `ina p4` and the controller import this module."""
    code = """
import pathlib, sys, ina.files
ina.files._PACKAGE = pathlib.Path("/nowhere/ina")
import ina.controller.config.tofino
from ina.cli.main import run
sys.exit(run(sys.argv[1:]))
"""
    for args, status, said in (
        (["p4", "info", "--help"], 0, ""),
        (["p4", "compile", "--target", "tofino"], 2, "reinstall ina\n"),
    ):
        command = [sys.executable, "-c", code, *args]
        ran = subprocess.run(command, capture_output=True, text=True)
        assert (ran.returncode, ran.stderr.endswith(said)) == (status, True), ran.stderr
