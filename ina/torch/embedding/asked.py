"""A look-up of one table: what is asked of the owners, and what becomes of it.

There are two ways, and the one that brings fewer vectors here is taken. *By row*: each row of the
batch once. torch's ``embedding_bag`` makes bags of them here, with the bits that it has anywhere,
and its gradient of the rows is what goes back. *By bag*: owners add up the rows of a bag, and its
gradient goes back once for all of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.functional import embedding_bag

from ina.embed.bags import Bags
from ina.embed.hot import Rows
from ina.embed.service import LookUp, Service
from ina.embed.sharding import Table
from ina.extension.embed import TableSpec

Push = Callable[[int, Bags, NDArray[np.float32]], None]
"""Of a gradient: the table's number, bags, and a vector for each."""


@dataclass(frozen=True)
class Query:
    """What a module is asked for a table, in the form of ``nn.EmbeddingBag``: 1-dimensional."""

    ids: torch.Tensor
    offsets: torch.Tensor
    weights: torch.Tensor | None


Once = tuple[NDArray[np.integer], NDArray[np.intp]]
"""Rows, each once, in order; and of each id of the batch which of them it is."""


class ByRow:
    """The rows of a batch, each once."""

    def __init__(
        self, service: Service, step: int, number: int, table: Table, query: Query, once: Once
    ) -> None:
        """Ask for the rows of `once`."""
        self._number, self._table, self._query = number, table, query
        rows, self._places = once
        self._rows = Bags.of(rows, limit=table.rows)
        self.rows: Rows | None = self._rows.rows
        self._pending: LookUp = service.look_up(step, number, self._rows)

    def vectors(self, push: Push | None) -> torch.Tensor:
        """Shape (bags, dim); with `push`, gradients go there. Raises HostLostError."""
        rows = torch.from_numpy(self._pending.wait())
        if push is not None:
            rows.requires_grad_()
            rows.register_hook(  # type: ignore[no-untyped-call]
                lambda grad: push(self._number, self._rows, grad.numpy())
            )
        places = torch.from_numpy(self._places.astype(np.int64))
        return embedding_bag(
            places,
            rows,
            self._query.offsets,
            mode=self._table.bag,
            per_sample_weights=self._query.weights,
        )


class ByBag:
    """The sums of bags, made by the owners of their rows."""

    rows: Rows | None = None
    """Replicas would save a bag only where it has no other rows."""

    def __init__(
        self, service: Service, step: int, number: int, table: Table, query: Query
    ) -> None:
        """Ask."""
        self._number, self._table = number, table
        weights = None if query.weights is None else query.weights.detach().numpy()
        self._bags = Bags.of(query.ids.numpy(), query.offsets.numpy(), weights, limit=table.rows)
        self._pending = service.look_up(step, number, self._bags)

    def vectors(self, push: Push | None) -> torch.Tensor:
        """Shape (bags, dim); with `push`, gradients go there. Raises HostLostError."""
        sums = torch.from_numpy(self._pending.wait())
        if push is not None:
            sums.requires_grad_()
            sums.register_hook(  # type: ignore[no-untyped-call]
                lambda grad: push(self._number, self._bags, grad.numpy())
            )
        if self._table.bag == "sum":
            return sums
        counts = np.maximum(np.diff(self._bags.offsets), 1).astype(np.float32)
        return sums / torch.from_numpy(counts)[:, None]


Asked = ByRow | ByBag


def ask(
    service: Service,
    step: int,
    number: int,
    table: Table,
    spec: TableSpec,
    query: Query,
    exact: bool,
) -> Asked:
    """Ask by row or by bag. Raises InvalidBagsError, NoSuchRowError before anything is sent."""
    once: Once = np.unique(query.ids.numpy(), return_inverse=True)
    is_by_row = exact or table.bag == "max" or _wants_rows(query)
    if is_by_row or once[0].size <= _most_pieces(spec, query):
        return ByRow(service, step, number, table, query, once)
    return ByBag(service, step, number, table, query)


def _wants_rows(query: Query) -> bool:
    """The gradient of a weight is a product with the row itself."""
    return query.weights is not None and query.weights.requires_grad


def _most_pieces(spec: TableSpec, query: Query) -> int:
    """Sums that come for the bags: of each as many as it has owners, at most."""
    counts = np.diff(np.append(query.offsets.numpy(), query.ids.numel()))
    return int(np.minimum(counts, spec.owners).sum())
