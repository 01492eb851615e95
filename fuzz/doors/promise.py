"""What a door may answer to bytes from outside: nothing but its own errors, each of one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ina.errors import InaError


class BrokenPromise(AssertionError):  # noqa: N818 (as in native/testing)
    """What a door says holds for every input did not."""


def promise(holds: object, what: str) -> None:
    """Raises :class:`BrokenPromise`."""
    if not holds:
        raise BrokenPromise(what)


@contextmanager
def refusals(*kinds: type[InaError]) -> Iterator[None]:
    """What is inside may end with one of these errors; its message is one line that can be shown.

    A file's own words in it are the file's: they are not asked to be printable.
    """
    try:
        yield
    except kinds as error:
        promise(str(error).strip(), "a refusal says something")
        promise("\n" not in str(error), f"a refusal is one line: {str(error)[:200]!r}")
