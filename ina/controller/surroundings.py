"""What a controller takes from the machine it runs on: clocks, chance, and its own name.

A controller in virtual time (``ina.sim``) has others.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field


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
    name: str = field(default_factory=_name)
    """What people know this controller by."""
