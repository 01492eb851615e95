"""A file name of a kind that a command does not write is refused before the work."""

from __future__ import annotations

from pathlib import Path

import pytest

from ina.cli import main

REFUSED = [
    (["p4", "graph", "pool.png"], "pool.png: want a name that ends in .svg"),
    (["p4", "graph", "pool"], "pool: want a name that ends in .svg"),
    (["p4", "compile", "--target", "tofino", "--report", "r.html"], "--report r.html: want a name"),
    (["bench", "allreduce", "--plot", "p.jpg"], "--plot p.jpg: want a name that ends in .png"),
    (["bench", "ddp", "--plot", "p.csv"], "--plot p.csv: want a name that ends in .png"),
    (["bench", "pipeline", "--save", "r.csv"], "--save r.csv: want a name that ends in .json"),
    (["bench", "pipeline", "--save", "no/r.json"], "--save no/r.json: there is no folder no"),
    (["job", "dump", "j", "--output", "j.txt"], "--output j.txt: want a name that ends in .json"),
    (["job", "dump", "j", "-o", "."], ".: it is a folder"),
    (["switch", "--port", "1=pcap:,out.pcapng"], "port 1: out.pcapng: want a name that ends in"),
]


@pytest.mark.parametrize(("command", "says"), REFUSED, ids=lambda value: " ".join(value)[:40])
def test_refused_before_the_work(
    command: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")  # no compiler: work that begins says something else
    monkeypatch.setenv("INA_CONTROLLER", "127.0.0.1:1")  # nor a controller
    assert main.run(command) == 2
    captured = capfd.readouterr()
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert says in captured.err
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []
