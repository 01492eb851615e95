"""What a command says of its progress where no terminal is: a line every ten seconds."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest

from ina.cli import main
from ina.cli.common import progress as module
from ina.cli.common.progress import progress
from ina.protocol.spec import VALUES_PER_PACKET_BUILDS

CLI = Path(main.__file__).parent


def test_a_line_says_what_goes_on_and_how_much_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("reading", 200) as told:
        assert re.fullmatch(r"reading, after \S+ \S+", told.line)
        told.update("case 3", done=50)
        told.advance(10)
        assert re.fullmatch(r"case 3, 30 %, after \S+ \S+", told.line)
        told.update(total=600)
        assert "case 3, 10 %" in told.line
    assert capsys.readouterr().err == ""  # it took less than ten seconds


def test_lines_come_though_the_work_tells_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    printed = threading.Event()

    class Stream:
        def __init__(self) -> None:
            self.lines: list[str] = []

        def write(self, text: str) -> None:
            self.lines.append(text)
            if "".join(self.lines).count("\n") >= 2:
                printed.set()

        def flush(self) -> None: ...

        def isatty(self) -> bool:
            return False

    stream = Stream()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", stream)
        with progress("compiling", every_s=0.01):
            assert printed.wait(60)
    assert "".join(stream.lines).startswith("compiling, after ")


def test_a_reader_that_goes_away_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    tried = threading.Event()

    class Broken:
        def write(self, text: str) -> None:
            tried.set()
            raise BrokenPipeError

        def isatty(self) -> bool:
            return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stderr", Broken())
        with progress("compiling", every_s=0.01):
            assert tried.wait(60)


LONG = {
    "test conformance --device model --only repeat/* --values 64": "model",
    f"test diff --device model --packets 300 --values {VALUES_PER_PACKET_BUILDS[0]}": "model",
    "sim run {scenario}": "virtual time",
    "sim replay 7": "virtual time",
    "sim fuzz --first 1 --seeds 1 --processes 1": "seeds",
    "pcap follow {capture} --job 1 --slot 0": "read",
    "pcap decode {capture}": "read",
}


@pytest.mark.parametrize("words", LONG)
def test_a_command_that_may_take_long_tells_of_it(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the interval at nothing each says at least one line on stderr."""
    scenario, capture = tmp_path / "s.toml", tmp_path / "c.pcap"
    scenario.write_text("[[job]]\nworkers = 2\nsteps = 2\ntensors = [{ elems = 5000 }]\n")
    capture.write_bytes(bytes.fromhex("4d3cb2a1020004000000000000000000ffff000001000000"))
    monkeypatch.setattr(module, "_tell", lambda told, ended, every_s: print_once(told, ended))
    words = words.format(scenario=scenario, capture=capture)
    assert main.run(words.split()) == 0
    assert LONG[next(key for key in LONG if key.split()[:2] == words.split()[:2])] in (
        capsys.readouterr().err
    )


def print_once(told: module.Progress, ended: threading.Event) -> None:
    import sys

    stream = sys.stderr
    ended.wait(600)
    print(told.line, file=stream)


def test_no_command_has_bars_of_its_own() -> None:
    """Which would say nothing where no terminal is. The demo's are beside lines of its own."""
    uses = {
        str(path.relative_to(CLI))
        for path in CLI.rglob("*.py")
        if re.search(r"rich\.(progress|status)|\.status\(", path.read_text())
    }
    assert uses == {"common/progress.py", "demo/progress.py"}
