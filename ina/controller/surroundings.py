"""What a controller takes from the machine it runs on: clocks, chance, and its own name.

A controller in virtual time (``ina.sim``) has others.
"""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any


def _name() -> str:
    return f"{socket.gethostname()} process {os.getpid()}"


@dataclass(frozen=True)
class Surroundings:
    """By default those of this process."""

    monotonic_s: Callable[[], float] = time.monotonic
    """The clock that durations are measured by; that of the event loop."""
    unix_s: Callable[[], float] = time.time
    """The clock that people read."""
    uniform: Callable[[float, float], float] = random.uniform
    """A number between two, by chance."""
    token_bytes: Callable[[int], bytes] = secrets.token_bytes
    """So many bytes that nobody can guess."""
    compute: Callable[[Callable[[], Any]], Awaitable[Any]] = asyncio.to_thread
    """Runs what takes long beside the event loop."""
    name: str = field(default_factory=_name)
    """What people know this controller by."""


OWN_SURROUNDINGS = Surroundings()
