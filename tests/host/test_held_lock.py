"""Signs of life come from native code: who holds Python's lock lives, who is stopped does not."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path

from tests.host import held_lock
from tests.host.held_lock import DEADLINE_S
from tests.worlds.processes import forks


@contextlib.contextmanager
def pair(folder: Path, how: tuple[str, str]) -> Iterator[Sequence[BaseProcess]]:
    folder.mkdir()
    workers = [
        forks.context.Process(target=held_lock.main, args=(rank, how[rank], folder))
        for rank in range(2)
    ]
    for worker in workers:
        worker.start()
    try:
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.join()


def ended(worker: BaseProcess, folder: Path, rank: int) -> tuple[int | None, str, str]:
    """Its exit code, what it said, its log."""
    worker.join(DEADLINE_S)
    said, log = ((folder / f"{name}.{rank}").read_text() for name in ("said", "log"))
    return worker.exitcode, said, log


def test_who_holds_pythons_lock_for_longer_than_a_lease_lives(tmp_path: Path) -> None:
    """Either rank, at once: they wait."""
    folders = tmp_path / "one", tmp_path / "two"
    with pair(folders[0], ("hold", "wait")) as one, pair(folders[1], ("wait", "hold")) as two:
        for folder, workers in zip(folders, (one, two), strict=True):
            for rank, worker in enumerate(workers):
                code, said, log = ended(worker, folder, rank)
                assert (code, said) == (0, f"rank {rank}: 2\n"), (folder, log)


def test_the_rank_with_the_controller_is_dead_when_it_is_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    with pair(folder, ("stop", "wait")) as workers:
        code, said, log = ended(workers[1], folder, 1)
        assert code == 0, log
        assert re.search("rank 0 is dead, stopped or not running Python: the controller", said), log
        assert "cannot leave" not in log  # it does not wait to tell one that is dead
