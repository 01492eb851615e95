"""Signs of life come from native code: who holds Python's lock lives, who is stopped does not."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
DEADLINE_S = 60.0


@contextlib.contextmanager
def pair(folder: Path, how: tuple[str, str]) -> Iterator[list[subprocess.Popen[str]]]:
    workers = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.host.held_lock", str(rank), how[rank], str(folder)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate(timeout=DEADLINE_S)


def test_who_holds_pythons_lock_for_longer_than_a_lease_lives(tmp_path: Path) -> None:
    """Either rank, at once: they wait."""
    (tmp_path / "other").mkdir()
    with pair(tmp_path, ("hold", "wait")) as one, pair(tmp_path / "other", ("wait", "hold")) as two:
        for holds, workers in enumerate((one, two)):
            for rank, worker in enumerate(workers):
                said, log = worker.communicate(timeout=DEADLINE_S)
                assert (worker.returncode, said) == (0, f"rank {rank}: 2\n"), (holds, log)


def test_the_rank_with_the_controller_is_dead_when_it_is_stopped(tmp_path: Path) -> None:
    with pair(tmp_path, ("stop", "wait")) as workers:
        said, log = workers[1].communicate(timeout=DEADLINE_S)
        assert workers[1].returncode == 0, log
        assert re.search("rank 0 is dead, stopped or not running Python: the controller", said), log
        assert "cannot leave" not in log  # it does not wait to tell one that is dead
