"""Compiled programs as they ship, packed with xz, and as plain files for tools that want those.

p4c's JSON has megabytes of source places, which xz makes a fortieth of. Plain files lie in the
cache, in a folder that is named by what was packed, so an ina of another version has its own.
"""

from __future__ import annotations

import atexit
import functools
import hashlib
import logging
import lzma
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from ina.cache_dir import CacheError, default_cache_dir

_log = logging.getLogger(__name__)

SUFFIX = ".xz"
_PRESET = 6
_CACHE = ("ina", "p4")  # as default_cache_dir() ends, and the folder of these files in it
_DIGEST = re.compile(r"[0-9a-f]{16}")


def write_packed(path: Path, content: bytes) -> None:
    """Packs ``content`` into ``path``; a file that holds the same content stays as it is.

    So it does not change with the version of the compressor. Raises OSError.
    """
    if not path.is_file() or lzma.decompress(path.read_bytes()) != content:
        path.write_bytes(lzma.compress(content, preset=_PRESET))


def unpacked(packed: tuple[Path, ...]) -> tuple[Path, ...]:
    """Plain copies of packed files, beside each other in one folder, without ``.xz``.

    They are written where the cache lacks them, or has something else. Without a cache that can be
    written they are in a temporary folder, which goes with this process; a warning says so.
    """
    found = _unpacked(packed)
    if not all(path.is_file() for path in found):  # a cache may be emptied at any time
        _unpacked.cache_clear()
        found = _unpacked(packed)
    return found


@functools.cache
def _unpacked(packed: tuple[Path, ...]) -> tuple[Path, ...]:
    contents = [path.read_bytes() for path in packed]
    digest = hashlib.sha256(b"".join(hashlib.sha256(it).digest() for it in contents)).hexdigest()
    names = [path.name.removesuffix(SUFFIX) for path in packed]
    plain = [lzma.decompress(content) for content in contents]
    try:
        return _written(_cache() / digest[:16], names, plain)
    except (OSError, CacheError) as error:
        folder = Path(tempfile.mkdtemp(prefix="ina-p4-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _log.warning(
            "compiled P4 programs are unpacked into %s, for this process: %s", folder, error
        )
        return _written(folder, names, plain)


def is_unpacked(path: Path) -> bool:
    """Whether a file is one that :func:`unpacked` wrote into a cache, this process's or another's.

    By where it lies: two processes of a user may have different caches (``XDG_CACHE_HOME``).
    """
    folder = path.resolve().parent
    return folder.parent.parts[-2:] == _CACHE and _DIGEST.fullmatch(folder.name) is not None


def _cache() -> Path:
    return default_cache_dir() / _CACHE[-1]


def _written(folder: Path, names: Sequence[str], contents: Sequence[bytes]) -> tuple[Path, ...]:
    paths = tuple(folder / name for name in names)
    for path, content in zip(paths, contents, strict=True):
        if path.is_file() and path.read_bytes() == content:
            continue
        folder.mkdir(parents=True, exist_ok=True)
        # Beside its place and renamed, so that several processes may do it at once.
        handle, scratch = tempfile.mkstemp(dir=folder, prefix=".")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(scratch, 0o444)
        os.replace(scratch, path)
    return paths
