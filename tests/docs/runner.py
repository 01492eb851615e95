"""Executes the blocks of one page, in order, in one scratch directory and one private network."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from filelock import FileLock

from tests.docs import ranks
from tests.docs.page import Block
from tests.selection import LONG
from tests.worlds.processes.page_network import PrivateNetwork
from tests.worlds.processes.stand_ins import forks_for

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_S = 120.0
# Printed by a server before it serves; later blocks may talk to it then.
READY_TIMEOUT_S = 120.0
_LOG_LINE = re.compile(rb"\d{4}-\d\d-\d\dT\S+ [A-Z]+ ina\.")


class PageRunner:
    """A scratch directory that looks like the checkout, and the processes a page left running."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.background: list[tuple[Block, subprocess.Popen[bytes]]] = []
        self.network = PrivateNetwork()
        # Without a network of its own a page takes ports of the machine: one page at a time then.
        self._ports = FileLock(Path(tempfile.gettempdir(), f"ina-docs-{os.getuid()}.lock"))
        if not self.network.prefix:
            self._ports.acquire()
        for entry in ROOT.iterdir():
            if entry.name not in (".git", "build", "Makefile"):
                (directory / entry.name).symlink_to(entry)
        # make works in the checkout itself: an editable install must not point into scratch.
        (directory / "Makefile").write_text(
            f"%:\n\t@$(MAKE) --no-print-directory -C {ROOT} $@\nMakefile: ;\n"
        )
        self._forks = forks_for(directory / ".forks")
        folders = [*([self._forks.folder] if self._forks else []), Path(sys.executable).parent]
        path = ":".join([*map(str, folders), os.environ["PATH"]])
        self.env = {**os.environ, "PATH": path, "COLUMNS": "100"}

    def reason_to_skip(self, block: Block) -> str | None:
        """Why the block cannot run here, if it cannot."""
        if "skip" in block.notes:
            return block.notes["skip"] or "the page says so"
        if "long" in block.notes and not LONG:
            sibling = block.notes["long"]
            assert (ROOT / sibling).is_file(), f"{block}: there is no {sibling}"
            if block.script.startswith("make "):  # that there is such a target, at least
                subprocess.run([*block.script.split(), "--dry-run"], cwd=ROOT, check=True)
            return f"make test-long runs it; on less, {sibling} does"
        for need in filter(None, map(str.strip, block.notes.get("needs", "").split(","))):
            if need == "root" and os.geteuid() == 0:
                continue
            if (ROOT / need).exists() or shutil.which(need, path=self.env["PATH"]):
                continue
            if need.startswith("pip ") and importlib.util.find_spec(need.removeprefix("pip ")):
                continue
            return f"needs {need.replace('pip ', 'pip install ')}"
        return None

    def run(self, block: Block) -> None:
        """Execute one block; raises AssertionError with what it printed when it fails."""
        if "file" in block.notes:
            (self.directory / block.notes["file"]).write_text(block.text + "\n")
        elif "background" in block.notes:
            self._start(block)
        elif (forked := ranks.script_of(block)) is not None:
            code, said = ranks.run(self.directory, forked, self.network.file, TIMEOUT_S)
            assert code == 0, f"{block} exited with {code}:\n{said}"
            shown = block.shown.splitlines()
            missing = [line for line in shown if line not in said.splitlines()]
            assert "exact" not in block.notes or not missing, f"{block} lacks {missing}:\n{said}"
        else:
            self._finish(block)

    def close(self) -> None:
        """Stop what the page left running; raises AssertionError when a server had died."""
        died = [str(block) for block, process in self.background if process.poll() is not None]
        for _, process in self.background:
            _end(process)
        if self._forks is not None:
            self._forks.close()
        self.network.close()
        self._ports.release()
        assert not died, f"stopped before its page ended: {died}"

    def _command(self, block: Block) -> list[str]:
        if block.language == "python":
            file = self.directory / f".block-{block.line}.py"
            file.write_text(block.text)
            return [*self.network.prefix, "env", "python", str(file)]
        # make works in the checkout and may have to download: it keeps the machine's network.
        prefix = [] if block.script.startswith("make ") else self.network.prefix
        return [*prefix, "bash", "-e", "-o", "pipefail", "-c", block.script]

    def _start(self, block: Block) -> None:
        log = self.directory / f".background-{block.line}"
        with log.open("wb") as out:
            process = subprocess.Popen(
                self._command(block), cwd=self.directory, env=self.env, stdout=out,
                stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        self.background.append((block, process))
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not _has_a_line(log.read_bytes()):
            assert process.poll() is None, f"{block} ended: {log.read_text()}"
            assert time.monotonic() < deadline, f"{block} printed nothing in {READY_TIMEOUT_S} s"
            time.sleep(0.05)

    def _finish(self, block: Block) -> None:
        process = subprocess.Popen(
            self._command(block), cwd=self.directory, env=self.env, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        timeout_s = float(block.notes.get("timeout", TIMEOUT_S))
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired as late:
            said = (late.output or b"").decode(errors="replace")
            running = _group(process.pid)
            raise AssertionError(
                f"{block} took longer than {timeout_s:.0f} s; running: {running}; it said:\n{said}"
            ) from None
        finally:
            _end(process)
        text = output.decode(errors="replace")
        wanted = int(block.notes.get("fails", 0))
        assert process.returncode == wanted, f"{block} exited with {process.returncode}:\n{text}"
        if "exact" in block.notes:
            assert _lines(text) == _lines(block.shown), f"{block} said:\n{text}"


def _has_a_line(printed: bytes) -> bool:
    """Whether a line is there that is no log line: servers log before they are ready."""
    return any(
        line.endswith(b"\n") and not _LOG_LINE.match(line) for line in printed.splitlines(True)
    )


def _group(leader: int) -> list[str]:
    """The command lines of a process group."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has just ended
            if os.getpgid(int(folder.name)) == leader:
                found.append((folder / "cmdline").read_text().replace("\0", " ").strip())
    return found


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the block's whole process group: politely, then not."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
        except ProcessLookupError:
            break
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue
        if sign == signal.SIGTERM:
            time.sleep(0.2)  # children of a shell that ended at once get a moment to end too
    process.wait(timeout=5)
    if process.stdout:
        process.stdout.close()


def _lines(text: str) -> list[str]:
    """Without the blanks at their ends, which no page keeps, and with a terminal's rules."""
    return [
        re.sub("^-+$", lambda rule: "─" * len(rule[0]), line.rstrip())
        for line in text.rstrip().splitlines()
    ]
