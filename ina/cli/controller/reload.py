"""SIGHUP to a running controller: it reads its file again, and says what came of it."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import Callable

from ina.controller.app import ControllerApp
from ina.controller.config import Config
from ina.errors import InaError

_log = logging.getLogger(__name__)


class Reloader:
    """Reloads on SIGHUP from :meth:`begin` on; one that came before that is done then."""

    def __init__(
        self, controller: ControllerApp, read: Callable[[], Config], stop: Callable[[], None]
    ) -> None:
        """Takes the signal, in this event loop. ``stop``: it came as its terminal has gone."""
        self._controller = controller
        self._read = read
        self._stop = stop
        # nohup ignores the signal, so as to outlive the terminal.
        is_bound = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
        self._had_terminal = is_bound and _has_terminal()
        self._serves = self._came_early = False
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._hang_up)

    def begin(self) -> None:
        """The controller serves now."""
        self._serves = True
        if self._came_early:
            self._reload()

    def _hang_up(self) -> None:
        if self._had_terminal and not _has_terminal():
            self._stop()
        elif self._serves:
            self._reload()
        else:
            self._came_early = True

    def _reload(self) -> None:
        try:
            found = self._controller.reload(self._read())
        except InaError as error:  # the old configuration is in force, whole
            _log.error("reload: %s: nothing has changed", error)
            return
        _log.info("reload: done, changed: %s", ", ".join(found.taken) or "nothing but files")
        if found.kept:
            _log.warning("reload: needs a restart, unchanged: %s", ", ".join(found.kept))


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
