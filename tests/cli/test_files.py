"""``ina files``: all that ships, whole trees, and nothing of the user's overwritten."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ina import files
from ina.cli.main import run
from ina.rpc.generate import ROOT

INCLUDE = re.compile(r'^#include "(.+)"', re.MULTILINE)


def test_every_tracked_file_of_the_folders_ships() -> None:
    folders = [folder for group in files.GROUPS.values() for folder in group.folders]
    listing = subprocess.run(
        ["git", "ls-files", "-z", *folders], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    tracked = {name for name in listing.split("\0") if name and (ROOT / name).exists()}
    assert tracked <= {str(path) for path in files.shipped()}
    for name, group in files.GROUPS.items():
        roots = {str(path).removesuffix(path.name) for path in files.shipped([name])}
        assert all(any(top.startswith(folder) for top in roots) for folder in group.folders)


def test_the_copies_are_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["files", str(tmp_path / "new"), "--json"]) == 0
    written = [Path(name) for name in json.loads(capsys.readouterr().out)["written"]]
    assert len(written) == len(files.shipped())
    for path in written:
        assert path.read_bytes() == (ROOT / path.relative_to(tmp_path / "new")).read_bytes()
    programs = [path for path in written if path.suffix == ".p4"]
    included = [
        path.parent / name for path in programs for name in INCLUDE.findall(path.read_text())
    ]
    assert len(included) > 20
    assert [path for path in included if not path.is_file()] == []


def test_one_group(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["files", str(tmp_path), "--only", "wireshark"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/tools/wireshark/ina.lua\n"
    assert run(["files", "--only", "wireshark", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"group": "wireshark", "file": "tools/wireshark/ina.lua"}
    ]


def test_nothing_is_overwritten_unless_forced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "dashboards" / "ina.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    assert run(["files", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"error: {mine} exists: --force overwrites\n"
    assert mine.read_text() == "mine"
    assert list(tmp_path.rglob("*.lua")) == []  # all or nothing
    assert run(["files", str(tmp_path), "--force"]) == 0
    assert mine.read_text() == (ROOT / "dashboards" / "ina.json").read_text()


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["FILE"], "FILE/dashboards: Not a directory"),
        (["FOLDER", "--force"], "FOLDER/dashboards/ina.json: Is a directory"),
        (["FOLDER", "--only", "docs"], "no group 'docs' of files: there are dashboards, deploy,"),
        (["--only", "docs"], "no group 'docs' of files: there are dashboards, deploy,"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    args: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder" / "dashboards" / "ina.json").mkdir(parents=True)
    places = {"FILE": str(tmp_path / "file"), "FOLDER": str(tmp_path / "folder")}

    def placed(text: str) -> str:
        return text.replace("FILE", places["FILE"]).replace("FOLDER", places["FOLDER"])

    assert run(["files", *map(placed, args)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {placed(said)}")
    assert error.count("\n") == 1


def test_an_install_below_a_hidden_folder_ships_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As pip install --user does: ~/.local/lib/python3.11/site-packages/ina."""
    before = files.shipped()
    package = tmp_path / ".local" / "ina"
    for path in before:
        (package / "_files" / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, package / "_files" / path)
    (package / "_files" / "examples" / "__pycache__").mkdir()
    (package / "_files" / "examples" / "__pycache__" / "gpt2.cpython-311.pyc").write_text("")
    monkeypatch.setattr(files, "_PACKAGE", package)
    monkeypatch.setattr(files, "_IN_WHEEL", package / "_files")
    assert files.root() == package / "_files"
    assert files.shipped() == before
