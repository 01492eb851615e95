"""Generated files are what their source says, and the command tells when they are not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

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


_TWO_FOR_ONE = """
import json
from ina.protocol import spec
spec.FIELDS = tuple(
    new for field in spec.FIELDS
    for new in ((spec.Field("colour", 7, "any"), spec.Field("last", 1, "it ends"))
                if field.name == "next_exponent" else (field,)))
from ina.protocol import emit
from ina.protocol.emit import markdown
page = markdown.render()
print(json.dumps({emit.PAGE: page, **{path: render() for path, render in emit.TARGETS.items()}}))
"""


def test_a_header_field_is_one_row_of_the_table() -> None:
    """Two fields in the place of another one are in all that is emitted, and nothing else asks."""
    command = [sys.executable, "-c", _TWO_FOR_ONE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    texts: dict[str, str] = json.loads(done.stdout)
    assert texts.keys() == {*emit.TARGETS, emit.PAGE}
    for path, text in texts.items():
        assert "colour" in text, path
        assert "last" in text, path
        assert "next_exponent" not in text, path
    made: dict[str, Any] = {}
    exec(texts["ina/protocol/generated/header_fields.py"], made)
    assert (made["HeaderFields"](colour=5).colour, made["HeaderFields"]().last) == (5, 0)


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
