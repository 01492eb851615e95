"""Bytes as a file that is nowhere but in memory, for readers that want a path."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def memory_file(data: bytes) -> Iterator[Path]:
    """A path that is valid inside."""
    descriptor = os.memfd_create("ina-door")
    try:
        os.write(descriptor, data)
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
