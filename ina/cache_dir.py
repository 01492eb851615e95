"""The folder in which this user's machine keeps what ina can make again."""

from __future__ import annotations

import os
from pathlib import Path

from ina.errors import InaError


class CacheError(InaError):
    """The folder cannot be found, written or run from; says what to set."""


def default_cache_dir() -> Path:
    """``$XDG_CACHE_HOME/ina`` or ``~/.cache/ina``.

    Raises :class:`CacheError`: neither that nor HOME is set, and nobody is known by this uid.
    """
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "ina"
    except RuntimeError:
        raise CacheError(
            f"no folder for what ina caches: uid {os.getuid()} has no name and no HOME: set"
            " XDG_CACHE_HOME to a folder that it may write"
        ) from None
