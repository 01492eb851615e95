"""What one may tune of embeddings; the same on all ranks."""

from __future__ import annotations

from dataclasses import dataclass

from ina.embed.hot import MOST_HOT_BYTES
from ina.embed.service import PATIENCE_S


@dataclass(frozen=True)
class EmbeddingOptions:
    """Of a module."""

    refresh_steps: int = 100
    """After so many, all ranks take replicas of the rows that nearly all ask for. 0: never."""
    most_hot_bytes: int = MOST_HOT_BYTES
    """Of replicas of rows, on each rank."""
    cache_bytes: int = 0
    """Of other ranks' rows, kept here as long as nothing is trained."""
    patience_s: float = PATIENCE_S
    """Without a word of a rank that is asked, until it counts as lost."""
