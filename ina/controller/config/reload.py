"""What a running controller takes from its changed file: quotas, windows, tokens, certificates.

All else is what it was made of: an address, the switch, the store. It needs a restart, which jobs
that run do not notice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec

from ina.controller.config import Config

LIVE = {
    **{name: name for name in ("tenants", "operators", "tls", "switch_tls")},
    **{"congestion": "congestion", "windows": "windows", "job": "job_rules"},
}
"""Sections that can change, each with the attribute of :class:`Config` that it is; of ``tls`` only
which files, not whether there are any."""


@dataclass(frozen=True)
class Changes:
    """What differs between two configurations."""

    config: Config
    """The running one with what can change as it is asked for."""
    taken: list[str]
    """Keys of what has changed."""
    kept: list[str]
    """Keys of what stays as it was until a restart."""


def changes(running: Config, before: Config, asked: Config) -> Changes:
    """``before`` is what was asked for last, ``running`` what became of it."""
    kept: list[str] = []
    taken: list[str] = []
    for key in _differences(before.document(), asked.document()):
        (taken if _can_change(key, before, asked) else kept).append(key)
    live: dict[str, Any] = {name: getattr(asked, name) for name in LIVE.values()}
    if any(key.startswith("tls") for key in kept):
        live["tls"] = running.tls
    preempt = msgspec.structs.replace(running.jobs, preempt=asked.jobs.preempt)
    return Changes(msgspec.structs.replace(running, jobs=preempt, **live), taken, kept)


def _can_change(key: str, before: Config, asked: Config) -> bool:
    section = key.partition(".")[0]
    if section == "tls":  # gRPC decides when it binds the port
        return (bool(before.tls.cert), bool(before.tls.ca)) == (
            bool(asked.tls.cert),
            bool(asked.tls.ca),
        )
    return section in LIVE or key == "jobs.preempt"


def _differences(before: Any, asked: Any, key: str = "") -> Iterator[str]:
    """Dotted keys of what is in one and not, or otherwise, in the other."""
    if not (isinstance(before, dict) and isinstance(asked, dict)):
        if before != asked:
            yield key
        return
    for name in sorted(before.keys() | asked.keys()):
        inner = f"{key}.{name}" if key else name
        yield from _differences(before.get(name), asked.get(name), inner)
