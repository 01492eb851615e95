"""The hash of what the native extension is made of; CMakeLists.txt runs this file, too.

``python -I native_sources.py CHECKOUT`` prints it, without ina: there is no extension yet.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

_PATTERNS = ("CMakeLists.txt", "native/**/*.[ch]pp", "native/**/*.[ch]")
_SHARED = (
    "ina/switch/*.h",  # the ABI of the pipelines that the extension runs
    "ina/switch/emit/runtime/ina_base.h",
    "ina/switch/emit/runtime/ina_crc.h",  # CRC-32, which hosts compute, too
)


def sources_sha256(checkout: Path) -> str:
    """Of the names and the contents of all sources below a checkout."""
    files = {path for pattern in (*_PATTERNS, *_SHARED) for path in checkout.glob(pattern)}
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(checkout).as_posix(), path) for path in files):
        content = path.read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


if __name__ == "__main__":
    print(sources_sha256(Path(sys.argv[1])))
