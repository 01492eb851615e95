"""The cache of compiled programs: content, concurrency, damage, and missing compilers."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ina.switch import errors
from ina.switch.c_target.cache import generator_sources
from ina.switch.c_target.target import CTarget
from ina.switch.errors import CompilationError, CompilerMissingError
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target
from tests.switch.emit_c.conftest import PROGRAMS

PROGRAM = PROGRAMS / "parsing.json"


def works(pipeline: Pipeline) -> bool:
    with pipeline:
        return pipeline.process(0, bytes.fromhex("2111")) == [(1, bytes.fromhex("022111"))]


def libraries(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.so"))


def test_a_program_is_compiled_once(tmp_path: Path) -> None:
    assert works(default_target(tmp_path).load(PROGRAM))
    [library] = libraries(tmp_path)
    before = library.stat().st_mtime_ns
    assert works(default_target(tmp_path).load(PROGRAM.read_bytes()))
    assert [p.stat().st_mtime_ns for p in libraries(tmp_path)] == [before]
    assert works(default_target(tmp_path).load(PROGRAMS / "stack.json")) is False
    assert len(libraries(tmp_path)) == 2


def test_what_makes_the_c_is_part_of_the_digest() -> None:
    """A new room of the generator that is not: users run what an older one made."""
    script = (
        "import sys, ina.switch.emit_c.emit\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith('ina.switch.')))"
    )
    told = subprocess.check_output([sys.executable, "-c", script], text=True)
    used = {Path(name) for name in told.split()} - {Path(errors.__file__)}
    assert len(used) > 20
    assert used <= set(generator_sources())


def test_a_compiler_is_asked_its_version_again_when_it_has_changed(tmp_path: Path) -> None:
    script = tmp_path / "cc"
    for version in ("one", "two"):
        script.write_text(
            f'#!/bin/sh\n[ "$1" = --version ] || exit 1\necho {version} | tee -a {tmp_path}/asked\n'
        )
        script.chmod(0o700)
        for _ in range(2):
            with pytest.raises(CompilationError):
                CTarget(tmp_path / "cache", str(script)).load(PROGRAM)
    assert (tmp_path / "asked").read_text().split() == ["one", "two"]


def test_the_generated_c_is_kept_to_read(tmp_path: Path) -> None:
    with default_target(tmp_path).load(PROGRAM) as pipeline:
        assert pipeline.generated is not None
        text = pipeline.generated.read_text()
    lines = PROGRAM.with_suffix(".p4").read_text().splitlines()
    line = next(n for n, code in enumerate(lines, 1) if "hdr.err.setValid" in code)
    assert f"// parsing.p4:{line}" in text
    assert "goto state_two;" in text


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of PROGRAM, by its name."""
    folder = tmp_path_factory.mktemp("whole")
    assert works(default_target(folder).load(PROGRAM))
    [library] = libraries(folder)
    return library


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", b"garbage", None])
def test_a_damaged_entry_is_compiled_anew(
    whole: Path, tmp_path: Path, damage: bytes | None
) -> None:
    """None: the library is there, but for its second half."""
    data = whole.read_bytes()
    library = tmp_path / whole.name
    library.write_bytes(data[: len(data) // 2] if damage is None else damage)
    assert works(default_target(tmp_path).load(PROGRAM))
    assert len(library.read_bytes()) == len(data)


def test_concurrent_loads_share_the_cache(tmp_path: Path) -> None:
    results: list[bool] = []

    def load() -> None:
        results.append(works(default_target(tmp_path).load(PROGRAM)))

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert results == [True] * 4
    assert len(libraries(tmp_path)) == 1
    assert not list(tmp_path.glob(".build-*"))


def test_no_compiler_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CompilerMissingError, match=r"apt install gcc, or set INA_CC"):
        CTarget(tmp_path, "no-such-compiler").load(PROGRAM)
    monkeypatch.setenv("INA_CC", "nor-this-one")
    with pytest.raises(CompilerMissingError, match="nor-this-one"):
        default_target(tmp_path).load(PROGRAM)


def test_a_failing_compiler_is_quoted(tmp_path: Path) -> None:
    script = tmp_path / "badcc"
    script.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo bad 1; exit 0; }\n'
        "echo 'x.c:1: error: no good' >&2\necho more >&2\nexit 1\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    with pytest.raises(CompilationError, match="error: no good") as caught:
        CTarget(tmp_path / "cache", str(script)).load(PROGRAM)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CompilationError, match="cannot write the cache"):
        default_target(tmp_path / "cache").load(PROGRAM)
