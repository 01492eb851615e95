"""What controllers of one store should have alike, as digests that can be stored and compared.

A store is for the controllers' eyes, but their files may name what is not: so digests, not values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ina.controller.config.tables import Config

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
