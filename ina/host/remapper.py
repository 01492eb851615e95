"""Carries a worker's part in changes of its job's mapping to the controller and back, in a thread.

The thread starts with the first change. Training does not wait for it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ina.errors import InaError
from ina.host.calls import Credentials
from ina.host.client import ControllerClient
from ina.host.errors import (
    ControllerError,
    ControllerTimeoutError,
    ControllerUnavailableError,
    MembershipEndedError,
    TransportError,
)
from ina.host.remapping import Remapping

_log = logging.getLogger(__name__)

_ANSWER_S = 5.0
_FIRST_PAUSE_S, _MAX_PAUSE_S = 0.1, 2.0
_LOOK_S = 0.1  # whether it is to stop, or there is news, while it waits for results
_JOIN_S = 5.0


class Remapper:
    """One worker's. stop() it before it leaves the job."""

    def __init__(
        self,
        remapping: Remapping,
        client: ControllerClient,
        credentials: Credentials,
        fail: Callable[[InaError], None],
    ) -> None:
        """`fail`: is told why this worker cannot follow the others, if it cannot."""
        self._remapping = remapping
        self._client = client
        self._credentials = credentials
        self._fail = fail
        self._news = threading.Event()  # there may be something to ask for
        self._is_over = False  # as far as the controller has said
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def ask(self, *, is_over: bool = False) -> None:
        """Ask the controller how a change goes on. `is_over`: it has said that it is over."""
        with self._lock:
            if self._stopping.is_set():
                return
            self._is_over = is_over
            self._news.set()
            if self._thread is None:
                name = f"ina-remap-{self._credentials.name}-{self._credentials.rank}"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    def heard(self, remaps_to: int) -> None:
        """What a heartbeat's answer said: the mapping that the job changes to, 0: none."""
        if remaps_to or self._remapping.epoch:
            self.ask(is_over=not remaps_to)

    def stop(self) -> None:
        """Take part in no more changes. Idempotent."""
        with self._lock:
            self._stopping.set()
            self._news.set()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_JOIN_S)
            if thread.is_alive():
                _log.warning("thread %s does not end", thread.name)

    def _run(self) -> None:
        while True:
            self._news.wait()
            self._news.clear()
            if self._stopping.is_set():
                return
            try:
                self._go_on()
            except (InaError, ValueError) as error:
                self._fail(TransportError(str(error)))
                return
            except RuntimeError as error:  # the session has ended, or is frozen
                _log.debug("job %r: %s", self._credentials.name, error)

    def _go_on(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            began_s = time.monotonic()
            try:
                word = self._remapping.word(is_over=self._is_over)
                mapping = self._client.remap(self._credentials, word, _ANSWER_S)
            except MembershipEndedError:
                return  # a heartbeat's answer says the same
            except (ControllerUnavailableError, ControllerTimeoutError) as error:
                _log.debug("%s", error)
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
                continue
            except ControllerError as error:
                _log.warning("%s", error)
                return
            pause_s = _FIRST_PAUSE_S
            if self._remapping.on_answer(mapping, time.monotonic() - began_s):
                continue
            if not self._has_done_more():
                return

    def _has_done_more(self) -> bool:
        """Wait for the results by the old mapping; False: there are none, or news comes first."""
        while self._remapping.lacks_results and not self._news.is_set():
            if self._remapping.wait_done(_LOOK_S):
                return True
        return False
