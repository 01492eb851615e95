"""Leaves the jobs of groups that the script did not destroy, when the interpreter exits."""

from __future__ import annotations

import atexit
import logging
import threading

_log = logging.getLogger("ina.torch")


def close_living_groups() -> None:
    """Shut down every group that is still open; errors are logged, never raised.

    Ctrl-C ends a wait for other ranks, and the program goes on to its end.
    """
    from ina.torch.process_group import LIVING

    for group in list(LIVING):
        try:
            group.shutdown()
        except KeyboardInterrupt:
            _log.warning("ina: interrupted while it left group %s", group.group_name)
        except Exception as error:
            _log.error("ina: could not close a process group at exit: %s", error)


def install() -> None:
    """Run :func:`close_living_groups` at exit.

    ``atexit`` runs after the interpreter has stopped its thread pools, and the embedded
    controller's gRPC server needs one to answer the others' Leave. ``threading._register_atexit``
    runs before that (and in multiprocessing's children, where ``atexit`` does not run at all); it
    is private, so fall back to ``atexit`` where it is missing.
    """
    register = getattr(threading, "_register_atexit", atexit.register)
    register(close_living_groups)
