"""The controllers of a store, with digests of their configurations. A standby writes here, too: it
is about itself, and no decision about jobs, so it needs no claim.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from ina.controller.store.interface import Transaction


@dataclass(frozen=True)
class Peer:
    """A controller."""

    name: str
    digests: dict[str, str]
    seen_unix_s: float
    """When it wrote this, by its own clock."""


def get_peers(db: Transaction) -> list[Peer]:
    """All that are kept, by name."""
    found = db.execute("SELECT name, digests, seen_unix_s FROM controllers ORDER BY name")
    return [
        Peer(name, msgspec.json.decode(text, type=dict[str, str]), seen_unix_s)
        for name, text, seen_unix_s in found
    ]


def put_peer(db: Transaction, peer: Peer, forget_before_unix_s: float) -> None:
    """Writes one; forgets those of before that time."""
    remove_peer(db, peer.name)
    text = msgspec.json.encode(peer.digests).decode()
    db.execute("INSERT INTO controllers VALUES (?, ?, ?)", (peer.name, text, peer.seen_unix_s))
    db.execute("DELETE FROM controllers WHERE seen_unix_s < ?", (forget_before_unix_s,))


def remove_peer(db: Transaction, name: str) -> None:
    """It has ended."""
    db.execute("DELETE FROM controllers WHERE name = ?", (name,))


def holder(db: Transaction) -> str:
    """The name of who has claimed the store last."""
    (name,) = db.execute("SELECT holder FROM claim").fetchone()
    return str(name)
