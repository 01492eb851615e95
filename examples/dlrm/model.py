"""DLRM: dense features through one MLP, ids through embeddings, their products through another.

Source: Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
Systems", arXiv:1906.00091 (2019).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import nn

DENSE_FEATURES = 13  # of Criteo's data, as the next
TABLES = 26
DIM = 16


def mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers of these sizes, with ReLU between them."""
    layers: list[nn.Module] = []
    for before, after in itertools.pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Dense(nn.Module):
    """What of the model is the same on all ranks: DDP takes care of it."""

    pairs: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.bottom = mlp([DENSE_FEATURES, 64, DIM])
        pairs = (TABLES + 1) * TABLES // 2
        self.top = mlp([DIM + pairs, 128, 64, 1])
        self.register_buffer("pairs", torch.triu_indices(TABLES + 1, TABLES + 1, offset=1))

    def forward(self, dense: torch.Tensor, vectors: torch.Tensor) -> torch.Tensor:
        """Features (samples, 13) and vectors (samples, 26, 16) to logits (samples,)."""
        bottom = torch.relu(self.bottom(dense))
        features = torch.cat([bottom[:, None], vectors], dim=1)
        products = features @ features.transpose(1, 2)
        interactions = products[:, self.pairs[0], self.pairs[1]]
        logits: torch.Tensor = self.top(torch.cat([bottom, interactions], dim=1)).squeeze(1)
        return logits
