"""Embedding tables that are spread over the ranks of a group.

:class:`EmbeddingBags` looks like a set of ``nn.EmbeddingBag``; its rows lie on the ranks that own
them, are pooled there, and are updated there. ``docs/embeddings.md`` explains.
"""

from __future__ import annotations

from ina.embed.sharding import Table
from ina.torch.embedding.module import EmbeddingBag, EmbeddingBags
from ina.torch.embedding.optimizer import EmbeddingOptimizer
from ina.torch.embedding.options import EmbeddingOptions

__all__ = ["EmbeddingBag", "EmbeddingBags", "EmbeddingOptimizer", "EmbeddingOptions", "Table"]
