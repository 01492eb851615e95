"""The checked-in builds belong to the sources beside them."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from ina.p4 import compiled
from ina.p4.builds import all_builds
from ina.p4.errors import UnknownBuildError
from ina.p4.programs import MANIFEST, P4_DIR, build_defines, build_name, source_sha256

STALE = "P4 sources and ina/p4/compiled differ: run `ina p4 compile` and commit"


BUILDS = [(values, mode) for mode, values in all_builds()]


@pytest.mark.parametrize(("values", "mode"), BUILDS)
def test_manifest_has_the_hash_of_the_sources(values: int, mode: str) -> None:
    assert compiled(values, mode).source_sha256 == source_sha256(build_defines(values)), STALE


@pytest.mark.parametrize(("values", "mode"), BUILDS)
def test_manifest_has_the_hashes_of_the_compiled_files(values: int, mode: str) -> None:
    build = json.loads(MANIFEST.read_text())["builds"][build_name(values, mode)]
    program = compiled(values, mode)
    assert _sha256(program.bmv2_json) == build["json_sha256"], STALE
    assert _sha256(program.p4info) == build["p4info_sha256"], STALE


def test_a_changed_source_changes_the_hash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = source_sha256(build_defines(64))
    for part in ("shared", "v1model"):
        (tmp_path / part).mkdir()
        for source in (P4_DIR / part).glob("*.p4"):
            (tmp_path / part / source.name).write_bytes(source.read_bytes())
    monkeypatch.setattr("ina.p4.programs.P4_DIR", tmp_path)
    assert source_sha256(build_defines(64)) == before
    with (tmp_path / "shared" / "slots.p4").open("a") as slots:
        slots.write("// one more line\n")
    assert source_sha256(build_defines(64)) != before


def test_a_define_changes_the_hash() -> None:
    values = {values for values, _ in BUILDS}
    hashes = {source_sha256(build_defines(each)) for each in values}
    assert len(hashes) == len(values) == 7


@pytest.mark.parametrize(("values", "mode"), BUILDS)
def test_json_names_source_lines_without_machine_paths(values: int, mode: str) -> None:
    program = json.loads(compiled(values, mode).bmv2_json.read_text())
    files = {
        primitive["source_info"]["filename"]
        for action in program["actions"]
        for primitive in action["primitives"]
        if primitive.get("source_info", {}).get("filename")
    }
    assert {"ina/p4/shared/accumulate.p4", "ina/p4/v1model/distribute.p4"} <= files
    assert all((P4_DIR.parent.parent / name).is_file() for name in files)


def test_an_unknown_build_is_refused() -> None:
    with pytest.raises(UnknownBuildError, match="65 values a packet: have 64, 256, 360 and 1024"):
        compiled(65)
    with pytest.raises(UnknownBuildError, match="64 values a packet: have 56, 248 and 1016"):
        compiled(64, "roce")
    with pytest.raises(UnknownBuildError, match="no program of mode 'sparse': have pool and shar"):
        compiled(64, "sparse")


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
