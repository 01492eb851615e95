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


def reload_on_hangup(
    controller: ControllerApp, read: Callable[[], Config], stop: Callable[[], None]
) -> None:
    """From now on, in this event loop. ``stop``: the signal came because its terminal has gone."""
    had_terminal = _has_terminal()

    def hang_up() -> None:
        if had_terminal and not _has_terminal():
            stop()
            return
        try:
            found = controller.reload(read())
        except InaError as error:  # the old configuration is in force, whole
            _log.error("reload: %s: nothing has changed", error)
            return
        _log.info("reload: done, changed: %s", ", ".join(found.taken) or "nothing but files")
        if found.kept:
            _log.warning("reload: needs a restart, unchanged: %s", ", ".join(found.kept))

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hang_up)


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True
