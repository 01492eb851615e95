"""Generated files are what their source says, and the command tells when they are not."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ina.protocol import emit


def test_checked_in_files_are_fresh() -> None:
    assert list(emit.stale_files()) == [], "run python -m ina.protocol.emit"


@pytest.mark.parametrize("path", [*emit.TARGETS, emit.PAGE])
def test_a_changed_file_is_found_and_mended(path: str, tmp_path: Path) -> None:
    for name in (*emit.TARGETS, emit.PAGE):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(emit.ROOT / name, tmp_path / name)
    copy = tmp_path / path
    whole = copy.read_text()
    copy.write_text(whole.replace("digest` |" if path == emit.PAGE else "digest", "changed"))
    assert list(emit.stale_files(tmp_path)) == [path]
    assert emit.write_files(tmp_path) == [path]
    assert copy.read_text() == whole


@pytest.mark.parametrize("path", emit.TARGETS)
def test_generated_files_name_their_source(path: str) -> None:
    head = (emit.ROOT / path).read_text().splitlines()[0]
    assert "python -m ina.protocol.emit" in head
    assert "ina/protocol/spec.py" in head


def test_lost_markers_are_reported(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"docs/protocol\.md lacks the line"):
        emit.stale_files(tmp_path)


def test_check_command() -> None:
    command = [sys.executable, "-m", "ina.protocol.emit", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_nothing_but_the_scapy_layer_imports_scapy() -> None:
    script = (
        "import sys, ina.protocol.emit, ina.protocol.switch_model;"
        "assert not [name for name in sys.modules if name.startswith('scapy')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
