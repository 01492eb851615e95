"""Every command in the README and in docs/ is executed; every link leads somewhere."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.docs import page as pages
from tests.docs import ranks
from tests.docs.page import blocks
from tests.docs.runner import ROOT, PageRunner
from tests.selection import LONG
from tests.worlds.processes.page_network import ports_taken

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
SHELLS = {"sh", "bash", "shell", "zsh"}

all_pages = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


@all_pages
@pytest.mark.timeout(600)
def test_commands_run(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Blocks that cannot run here are named in the report; a page with no other is skipped."""
    runnable = [
        block
        for block in blocks(page)
        if block.language in ("console", "python") or "file" in block.notes
    ]
    if not runnable:
        pytest.skip("no commands on this page")
    runner = PageRunner(tmp_path)
    skipped = []
    try:
        if not runner.network.prefix:
            taken = ports_taken(runnable)
            assert not taken, f"{page.name} needs ports {taken} of 127.0.0.1: somebody holds them"
        for block in runnable:
            if reason := runner.reason_to_skip(block):
                skipped.append(f"{block}: {reason}")
            else:
                runner.run(block)
    finally:
        runner.close()
    if skipped:
        request.node.add_report_section("call", "blocks not executed", "\n".join(skipped))
    if len(skipped) == len(runnable):
        pytest.skip("; ".join(skipped))


@all_pages
def test_commands_are_written_so_that_they_can_be_run(page: Path) -> None:
    for block in blocks(page):
        assert block.language not in SHELLS, f"{block}: use ```console with lines `$ command`"
        if block.language == "console":
            assert block.script.strip(), f"{block}: no line begins with `$ `"


@all_pages
def test_links_resolve(page: Path) -> None:
    broken = []
    for link in pages.links(page):
        if "://" in link or link.startswith("mailto:"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (
            anchor and target.suffix == ".md" and anchor not in pages.anchors(target)
        ):
            broken.append(link)
    assert broken == []


def write(tmp_path: Path, text: str) -> Path:
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


def test_a_failing_command_fails_its_page(tmp_path: Path) -> None:
    (block,) = blocks(write(tmp_path, "```console\n$ echo one; exit 3\none\n```\n"))
    (tmp_path / "run").mkdir()
    runner = PageRunner(tmp_path / "run")
    with pytest.raises(AssertionError, match="exited with 3"):
        runner.run(block)
    runner.close()


def test_exact_output_is_compared_and_continued_lines_are_one_command(tmp_path: Path) -> None:
    text = "<!-- exact -->\n```console\n$ echo one \\\n> two\none two\n```\n"
    (tmp_path / "run").mkdir()
    runner = PageRunner(tmp_path / "run")
    (block,) = blocks(write(tmp_path, text))
    runner.run(block)
    (block,) = blocks(write(tmp_path, text.replace("one two\n", "three\n")))
    with pytest.raises(AssertionError):
        runner.run(block)
    runner.close()


def test_a_block_in_a_list_is_one(tmp_path: Path) -> None:
    lines = ["<!-- exact -->", "```console", "$ printf 'a\\n b\\n'", "a", " b", "```"]
    text = "\n".join(["1. Do", "", *(f"    {line}" for line in lines), "", "2. [x](y)"])
    page = write(tmp_path, text)
    (block,) = blocks(page)
    assert (block.line, block.notes, block.shown) == (4, {"exact": ""}, "a\n b")
    assert "printf" not in pages.prose(page)
    assert pages.links(page) == ["y"]


def test_a_note_with_an_unknown_part_is_not_lost(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- skip: this; that -->\n```console\n$ false\n```\n")
    with pytest.raises(AssertionError, match=r"unknown: .'that'"):
        blocks(page)


def test_a_background_block_runs_until_its_page_ends(tmp_path: Path) -> None:
    text = "<!-- background -->\n```console\n$ echo $$ > pid; echo ready; sleep 60\n```\n"
    (tmp_path / "run").mkdir()
    runner = PageRunner(tmp_path / "run")
    (block,) = blocks(write(tmp_path, text))
    runner.run(block)
    pid = int((tmp_path / "run" / "pid").read_text())
    assert Path(f"/proc/{pid}").exists()
    runner.close()
    assert not Path(f"/proc/{pid}").exists()


def test_ranks_are_told_who_they_are_and_one_that_fails_fails_its_page(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    (tmp_path / "ranks.py").write_text(
        "import os, sys\nrank, size = os.environ['RANK'], os.environ['WORLD_SIZE']\n"
        "print(f'rank {rank} of {size} in {sys.argv}')\nassert rank == '0', 'no room'\n"
    )
    code, said = ranks.run(tmp_path, ranks.Script({}, 2, "ranks.py", ["-x"]), None, 60.0)
    assert code == 1
    where = "in ['ranks.py', '-x']"
    for line in (f"rank 0 of 2 {where}", f"rank 1 of 2 {where}", "AssertionError: no room"):
        assert line in said
    text = "```console\n$ INA_JOB=j torchrun --standalone --nproc-per-node 4 a/m.py -n 1\n```\n"
    (block,) = blocks(write(tmp_path, text))
    script = ranks.Script({"INA_JOB": "j"}, 4, "a/m.py", ["-n", "1"])
    assert ranks.script_of(block) == (None if LONG else script)
    block = replace(block, page=tmp_path / "pytorch.md")
    assert ranks.script_of(block) is None  # that page's are torchrun's


def test_a_port_somebody_holds_is_named(tmp_path: Path) -> None:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as holder:
            holder.bind(("127.0.0.1", 0))
            port = holder.getsockname()[1]
            text = f"```console\n$ serve 127.0.0.1:{port}\nready: 127.0.0.1:1111\n```\n"
            page = blocks(write(tmp_path, text))
            assert ports_taken(page) == [port]
        assert ports_taken(page) == []


def test_two_pages_at_once_may_use_one_port(tmp_path: Path) -> None:
    serve = (
        "import socket, time; socket.create_server(('127.0.0.1', 17700)); print(); time.sleep(60)"
    )
    text = f'<!-- background -->\n```console\n$ exec python -uc "{serve}"\n```\n'
    (block,) = blocks(write(tmp_path, text))
    runners = []
    try:
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            runners.append(PageRunner(tmp_path / name))
            if not runners[0].network.prefix:
                pytest.skip("no network namespace can be made here")
            runners[-1].run(block)
    finally:
        for runner in runners:
            runner.close()
