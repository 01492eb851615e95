"""Where a store is: ``sqlite:///path`` (four slashes: from the root) or ``postgresql://...``."""

from __future__ import annotations

from urllib.parse import urlsplit

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
IN_MEMORY = "sqlite://"
"""The store lives and dies with this process."""


def problem_of(url: str) -> str | None:
    """What is wrong with a URL, or None."""
    if url == IN_MEMORY or url.startswith(POSTGRES):
        return None
    if not url.startswith(SQLITE):
        return f"{shown(url)!r}: want sqlite:///PATH or postgresql://USER@HOST/DATABASE"
    return None if url.removeprefix(SQLITE) else "sqlite:/// names no file"


def path_of(url: str) -> str | None:
    """The file of a SQLite store; None: it is none, or in memory."""
    return url.removeprefix(SQLITE) if url.startswith(SQLITE) else None


def shown(url: str) -> str:
    """The URL for people: of a file its path; never a password, nor parameters."""
    if not url:
        return ""
    if url.startswith(SQLITE):
        return url.removeprefix(SQLITE)
    parts = urlsplit(url)
    who, at, where = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{who.partition(':')[0]}{at}{where}{parts.path}"
