"""Packed programs come out whole, wherever the cache is and whatever lies there."""

from __future__ import annotations

import logging
import lzma
from pathlib import Path

import pytest

from ina.p4 import names
from ina.p4.packed import _unpacked, is_unpacked, unpacked, write_packed
from ina.p4.programs import COMPILED_DIR

CONTENT = b"{}\n" * 1000


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    _unpacked.cache_clear()
    path = tmp_path / "x.json.xz"
    write_packed(path, CONTENT)
    return path


def test_what_is_damaged_in_the_cache_is_written_anew(
    packed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (plain,) = unpacked((packed,))
    assert (plain.name, plain.read_bytes()) == ("x.json", CONTENT)
    assert plain.is_relative_to(tmp_path / "cache" / "ina" / "p4")
    assert is_unpacked(plain)
    assert not is_unpacked(packed)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    assert is_unpacked(plain)  # who unpacked it may have had another cache than who runs it
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plain.chmod(0o600)
    plain.write_bytes(CONTENT[:-1])
    _unpacked.cache_clear()
    assert unpacked((packed,)) == (plain,)
    assert plain.read_bytes() == CONTENT
    plain.unlink()
    assert unpacked((packed,))[0].read_bytes() == CONTENT


def test_without_a_cache_a_temporary_folder_is_named(
    packed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").touch()
    with caplog.at_level(logging.WARNING, "ina"):
        (plain,) = unpacked((packed,))
    assert plain.read_bytes() == CONTENT
    assert f"unpacked into {plain.parent}, for this process" in caplog.text


def test_the_same_content_leaves_the_file_as_it_is(packed: Path) -> None:
    packed.write_bytes(lzma.compress(CONTENT, preset=0))  # as another version might pack it
    before = packed.read_bytes()
    write_packed(packed, CONTENT)
    assert packed.read_bytes() == before
    write_packed(packed, CONTENT + b"\n")
    assert lzma.decompress(packed.read_bytes()) == CONTENT + b"\n"


def test_what_is_in_git_is_small() -> None:
    files = list(COMPILED_DIR.iterdir())
    assert {path.suffix for path in files} == {".xz", ".json"}
    assert sum(path.stat().st_size for path in files) < len(names.MODES) << 18
