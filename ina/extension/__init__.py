"""The way to the extension ``ina._native``, which is refused where it is older than its Python.

In a checkout that is used in place, the Python changes with every ``git pull`` and the extension
with every build. One that was left behind lacks what its callers name, deep inside a worker, while
the others wait for it. So the hash of its sources is compiled in, and compared here with what they
are now. In a wheel both are of one build, and no sources are beside it.
"""

from __future__ import annotations

from pathlib import Path

from ina import _native
from ina.errors import MissingToolError
from ina.native_sources import sources_sha256

CHECKOUT = Path(__file__).parent.parent.parent


class StaleExtensionError(MissingToolError):
    """There is no native extension, or one of other sources; the message says what to run."""


def check(checkout: Path = CHECKOUT) -> str:
    """Where the extension is. Raises :class:`StaleExtensionError`."""
    how = f"make venv in {checkout}, or pip install it again"
    if not _native.__file__:  # a folder of type stubs
        raise StaleExtensionError(f"ina's native extension is not built: {how}")
    has_sources = (checkout / "CMakeLists.txt").is_file() and (checkout / "native").is_dir()
    built_of = getattr(_native, "SOURCES_SHA256", "")
    if has_sources and built_of != sources_sha256(checkout):
        raise StaleExtensionError(
            f"{_native.__file__} was built from other sources than {checkout} has now: {how}"
        )
    return _native.__file__


check()
