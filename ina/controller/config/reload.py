"""What differs between two configurations. What a running controller takes from its changed file:
quotas, windows, tokens, certificates. What controllers of one store should have alike: as digests.

All else is what it was made of: an address, the switch, the store. It needs a restart, which jobs
that run do not notice.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from ina.controller.config.tables import Config

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


_OWN = frozenset(("listen", "metrics", "store", "tls", "switch_tls", "operators"))
"""Of each controller: addresses, and files of its machine."""
_OWN_OF_SWITCH = frozenset(("grpc_addr", "election_id", "data_shm"))
_DIGEST_CHARS = 16


def digests(config: Config) -> dict[str, str]:
    """By dotted key; a list is one key."""
    document = {key: it for key, it in msgspec.to_builtins(config).items() if key not in _OWN}
    for key in ("switch", "aggregator"):
        document[key] = [
            {name: it for name, it in table.items() if name not in _OWN_OF_SWITCH}
            for table in document[key]
        ]
    if len(document["switch"]) == 1:
        document["switch"] = document["switch"][0]
    return {key: _digest(value) for key, value in _leaves(document)}


def differences(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """Keys that only one of them has, or of which the values differ; a table that only one has is
    named without its keys."""
    found = [key for key in one.keys() | other.keys() if one.get(key) != other.get(key)]
    tables = [frozenset(it for key in side for it in _tables(key)) for side in (one, other)]
    return sorted({_shortest(key, *tables) for key in found})


def _shortest(key: str, *tables: frozenset[str]) -> str:
    return next((it for it in _tables(key) if not all(it in side for side in tables)), key)


def _tables(key: str) -> Iterator[str]:
    """``a`` and ``a.b`` of ``a.b.c``."""
    parts = key.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts)))


def _leaves(value: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, it in value.items():
        if isinstance(it, dict):
            yield from _leaves(it, f"{before}{name}.")
        else:
            yield before + name, it


def _digest(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value)).hexdigest()[:_DIGEST_CHARS]
