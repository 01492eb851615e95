"""Runs the rules of a session's membership in threads, which take turns: what ships.

A rule that waits, or calls what may take long, lets others have their turn meanwhile.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ina.extension.host import TransportEngine
from ina.host.member.driver import Flag, Procedure
from ina.rpc.patience import Patience

_log = logging.getLogger(__name__)

T = TypeVar("T")


class ThreadDriver:
    """One session's. See :class:`ina.host.member.driver.Driver`."""

    def __init__(self, name: str) -> None:
        """`name`: whose threads they are, for people."""
        self._name = name
        self._lock = threading.Lock()
        self._holder = 0  # the thread whose turn it is; 0: nobody's
        self._threads: dict[str, threading.Thread] = {}

    def run(self, rule: Coroutine[Any, Any, T]) -> T:
        """Run it here, from now to its end. From any thread, but not from within a rule."""
        self._take_turn()
        try:
            rule.send(None)
        except StopIteration as ended:
            result: T = ended.value
            return result
        finally:
            if self._holder == threading.get_ident():  # not where Ctrl-C came before its next turn
                self._give_turn()
        rule.close()
        raise AssertionError("a rule awaits what no driver has")

    @contextmanager
    def others_turn(self) -> Iterator[None]:
        """Within a rule: while it lasts, others run."""
        self._give_turn()
        try:
            yield
        finally:
            self._take_turn()

    def _take_turn(self) -> None:
        self._lock.acquire()
        self._holder = threading.get_ident()

    def _give_turn(self) -> None:
        self._holder = 0
        self._lock.release()

    def now_s(self) -> float:
        """Of the machine's clock."""
        return time.monotonic()

    def flag(self) -> Flag:
        """A new one, not set."""
        return threading.Event()

    def start(self, name: str, procedure: Procedure) -> None:
        """In a thread of its own."""
        thread = threading.Thread(
            target=lambda: self.run(procedure()), name=f"ina-{name}-{self._name}", daemon=True
        )
        self._threads[name] = thread
        thread.start()

    async def ended(self, name: str, timeout_s: float) -> None:
        """Until its thread has; a thread does not wait for itself."""
        thread = self._threads.get(name)
        if thread is None or thread is threading.current_thread():
            return
        with self.others_turn():
            thread.join(timeout_s)
        if thread.is_alive():
            _log.warning("thread %s does not end", thread.name)

    async def wait(self, flag: Flag, timeout_s: float) -> bool:
        """Until the flag is set; False: the time is over."""
        assert isinstance(flag, threading.Event)
        with self.others_turn():
            return flag.wait(timeout_s)

    async def until_set(self, flag: Flag) -> None:
        """However long it takes."""
        assert isinstance(flag, threading.Event)
        with self.others_turn():
            flag.wait()

    async def sleep(self, for_s: float) -> None:
        """Do nothing."""
        with self.others_turn():
            time.sleep(for_s)

    async def until_cut(self, transport: TransportEngine, timeout_s: float) -> bool:
        """Until it has the older mapping's results; False: the time is over."""
        with self.others_turn():
            return transport.wait_cut(round(timeout_s * 1e9))

    async def outside(self, function: Callable[[], T]) -> T:
        """Call it while others have their turn."""
        with self.others_turn():
            return function()

    def patience(self, whom: str, timeout_s: float) -> Patience:
        """Warns through the log."""
        return Patience(_log, whom, timeout_s)
