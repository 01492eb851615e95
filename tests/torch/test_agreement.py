"""What ranks tell each other when their switch is lost, where several threads come to it first."""

from __future__ import annotations

import importlib
import sys
import threading
from types import SimpleNamespace

from ina.host import recovery
from ina.torch.fallback import agreement
from tests.worlds.processes import forks

THREADS = 8


class _Peers:
    """Of a rank that is alone; all threads come here before one goes on."""

    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    def gather(self, message: bytes) -> list[bytes]:
        self._barrier.wait()
        return [message]


def _agree_at_once() -> None:
    sys.setswitchinterval(1e-5)
    frozen = SimpleNamespace(export=recovery.Export(1, 1, 0, 1, 64, 0, (), ()))
    for _ in range(100):
        importlib.reload(recovery)  # as in a new process: no type has been decoded yet
        importlib.reload(agreement)
        peers, found = _Peers(threading.Barrier(THREADS)), []

        def agree() -> None:
            found.append(agreement.agree(frozen, peers).newest)  # type: ignore[arg-type]  # noqa: B023

        threads = [threading.Thread(target=agree) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [0] * THREADS


def test_groups_of_one_process_may_agree_at_once() -> None:
    """msgspec ended the process where two threads decoded the first message of a type."""
    assert forks.call(_agree_at_once, timeout_s=120.0) == (0, "")
