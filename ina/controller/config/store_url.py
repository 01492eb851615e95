"""Where a store is: ``sqlite:///path`` (four slashes: from the root) or ``postgresql://...``."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
IN_MEMORY = "sqlite://"
"""The store lives and dies with this process."""
_UNREADABLE = (
    "hosts and ports cannot be told from user and password:"
    " write @ : / ? # [ ] in these as %40 %3A %2F %3F %23 %5B %5D"
)


def problem_of(url: str) -> str | None:
    """What is wrong with a URL, or None."""
    if url == IN_MEMORY:
        return None
    if url.startswith(POSTGRES):
        return None if _parts(url) else f"{shown(url)!r}: {_UNREADABLE}"
    if not url.startswith(SQLITE):
        return f"{shown(url)!r}: want sqlite:///PATH or postgresql://USER@HOST/DATABASE"
    path = url.removeprefix(SQLITE)
    if path == ":memory:":
        return f"{path} is SQLite's name for no file at all: leave url and path empty"
    return None if path else "sqlite:/// names no file"


def path_of(url: str) -> str | None:
    """The file of a SQLite store; None: it is none, or in memory."""
    return url.removeprefix(SQLITE) if url.startswith(SQLITE) else None


def shown(url: str) -> str:
    """The URL for people: of a file its path; never a password, nor parameters."""
    if not url:
        return ""
    if url.startswith(SQLITE):
        return url.removeprefix(SQLITE)
    parts = _parts(url)
    if parts is None:
        return f"{url.partition(':')[0]}://..."
    who, at, where = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{who.partition(':')[0]}{at}{where}{parts.path}"


def _parts(url: str) -> SplitResult | None:
    """None: the URL cannot be taken apart, so a password may be anywhere in it."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    hosts = parts.netloc.rpartition("@")[2].split(",")
    ports = [host.rpartition("]")[2].rpartition(":") for host in hosts]
    is_plain = all(not colon or port.isdecimal() or not port for _, colon, port in ports)
    return parts if is_plain and "@" not in parts.path + parts.fragment else None
