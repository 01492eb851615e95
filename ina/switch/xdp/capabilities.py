"""What of root's power a process needs to give the kernel programs."""

from __future__ import annotations

from pathlib import Path

_STATUS = Path("/proc/self/status")
_SYS_ADMIN = 21
_NEEDED = {"CAP_BPF": 39, "CAP_NET_ADMIN": 12, "CAP_PERFMON": 38}
"""Bits, by name. Without CAP_PERFMON the verifier keeps programs from adding to pointers what
packets say."""
_IN_SYS_ADMIN = {"CAP_BPF", "CAP_PERFMON"}


def missing() -> list[str]:
    """Names of capabilities that this process does not have."""
    lines = _STATUS.read_text().splitlines()
    (effective,) = (int(line.split()[1], 16) for line in lines if line.startswith("CapEff:"))
    covered = _IN_SYS_ADMIN if effective >> _SYS_ADMIN & 1 else set()
    return [
        name for name, bit in _NEEDED.items() if not effective >> bit & 1 and name not in covered
    ]


def needed() -> str:
    """All of them, to say."""
    *first, last = _NEEDED
    return f"{', '.join(first)} and {last}"
