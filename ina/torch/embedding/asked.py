"""A batch of look-ups of a module: what is asked of the owners, and what becomes of it.

The native batch takes of each table the way that brings fewer vectors here. *By row*: each row of
the batch once; where bags have more than one, torch's ``embedding_bag`` makes them here, with the
bits that it has anywhere. *By bag*: owners add up the rows of a bag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch.nn.functional import embedding_bag

from ina.embed.bags import Bags
from ina.embed.errors import InvalidBagsError, NoSuchRowError
from ina.embed.hot import Rows
from ina.embed.service import Service
from ina.embed.sharding import Table
from ina.extension.embed import Batch, TableSpec

Push = Callable[[], Service]
"""Where gradients go; raises TableError if it is too late for them."""
_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)


@dataclass(frozen=True)
class Query:
    """What a module is asked for a table, in the form of ``nn.EmbeddingBag``."""

    ids: torch.Tensor
    """Int64, (n,)."""
    offsets: torch.Tensor | None
    """Int64, (bags,); none: bags of as many rows each."""
    bags: int
    weights: torch.Tensor | None
    """Float32, (n,)."""

    @property
    def weights_learn(self) -> bool:
        """The gradient of a weight is a product with the row itself."""
        return self.weights is not None and self.weights.requires_grad


def query_of(
    name: str,
    ids: torch.Tensor,
    offsets: torch.Tensor | None = None,
    weights: torch.Tensor | None = None,
) -> Query:
    """As the native batch takes it. Raises InvalidBagsError."""
    for what, tensor in (("ids", ids), ("offsets", offsets), ("weights", weights)):
        if tensor is None:
            continue
        if tensor.device.type != "cpu":
            raise InvalidBagsError(f"table {name!r}: {what} are on {tensor.device}: want cpu")
        if tensor.dtype not in ((torch.float32,) if what == "weights" else _INTEGERS):
            want = "float32" if what == "weights" else "integers"
            raise InvalidBagsError(f"table {name!r}: {what}: {tensor.dtype}: want {want}")
    if weights is not None and weights.shape != (ids.numel(),):
        shape = tuple(weights.shape)
        raise InvalidBagsError(f"table {name!r}: weights of shape {shape}: want ({ids.numel()},)")
    flat = ids.reshape(-1).long().contiguous()
    weights = None if weights is None else weights.contiguous()
    if ids.dim() == 2:
        if offsets is not None:
            raise InvalidBagsError(f"table {name!r}: ids of shape (bags, rows) have no offsets")
        return Query(flat, None, ids.shape[0], weights)
    if ids.dim() != 1 or offsets is None or offsets.dim() != 1:
        raise InvalidBagsError(
            f"table {name!r}: ids of shape {tuple(ids.shape)}: want (bags, rows a bag), or (n,) and"
            " offsets (bags,)"
        )
    return Query(flat, offsets.long().contiguous(), offsets.numel(), weights)


Kind = Literal["whole", "bags", "rows"]
"""Of a table's answer: its bags' vectors; rows, whose bags torch makes; rows that torch also makes
the gradients of, for they are not those of a sum."""


class Asked:
    """A batch that has been asked for."""

    def __init__(
        self,
        service: Service,
        step: int,
        queries: Mapping[int, Query],
        tables: Sequence[Table],
        specs: Sequence[TableSpec],
        exact: bool,
    ) -> None:
        """Ask. `queries`: by number of the table.

        Raises NoSuchRowError, InvalidBagsError before anything is sent.
        """
        self._service, self._step = service, step
        self._numbers = list(queries)
        self._tables = [tables[number] for number in queries]
        self._queries = list(queries.values())
        self._batch = _batch_of(queries, tables, specs, exact)
        self._kinds: list[Kind] = [self._kind(i) for i in range(len(self._queries))]
        self._pending = service.look_up_batch(step, self._batch)

    def _kind(self, i: int) -> Kind:
        if not self._batch.is_by_row(i) or self._batch.is_plain(i):
            return "whole"
        is_sum = self._tables[i].bag != "max" and not self._queries[i].weights_learn
        return "bags" if is_sum else "rows"

    def rows(self) -> Iterator[tuple[int, Rows]]:
        """Numbers of tables that are asked for by row, and these, each once.

        Of others a replica would save a bag only where it has no other rows.
        """
        for i, number in enumerate(self._numbers):
            if self._batch.is_by_row(i):
                rows = np.empty(self._batch.asked(i), np.uint32)
                self._batch.read_rows(i, rows.ctypes.data)
                yield number, rows

    def vectors(self, push: Push | None) -> dict[str, torch.Tensor]:
        """Of shape (bags, dim), by table; with `push`, gradients go there. Raises HostLostError."""
        came = [
            torch.empty((query.bags if kind == "whole" else self._batch.asked(i), table.dim))
            for i, (query, table, kind) in enumerate(
                zip(self._queries, self._tables, self._kinds, strict=True)
            )
        ]
        self._pending.take([one.data_ptr() for one in came])
        for i, kind in enumerate(self._kinds):
            if kind == "rows":
                came[i] = self._pooled(i, self._learning(i, came[i], push))
            elif kind == "bags":
                with torch.no_grad():
                    came[i] = self._pooled(i, came[i])
        sums = [i for i, kind in enumerate(self._kinds) if kind != "rows"]
        if push is not None and sums:
            anchor = torch.zeros((), requires_grad=True)
            made = _Sums.apply(anchor, self, push, sums, [came[i] for i in sums])  # type: ignore[no-untyped-call]
            for i, one in zip(sums, made, strict=True):
                came[i] = one
        return {table.name: one for table, one in zip(self._tables, came, strict=True)}

    def _pooled(self, i: int, rows: torch.Tensor) -> torch.Tensor:
        query = self._queries[i]
        places = torch.empty(query.ids.numel(), dtype=torch.int64)
        self._batch.read_places(i, places.data_ptr())
        if query.offsets is None and query.weights is None:
            places = places.reshape(query.bags, query.ids.numel() // max(query.bags, 1))
        offsets = query.offsets
        if offsets is None and query.weights is not None:
            offsets = torch.arange(query.bags) * (query.ids.numel() // max(query.bags, 1))
        return embedding_bag(
            places, rows, offsets, mode=self._tables[i].bag, per_sample_weights=query.weights
        )

    def _learning(self, i: int, rows: torch.Tensor, push: Push | None) -> torch.Tensor:
        """Rows whose gradient, which torch makes, goes to their owners."""
        if push is None:
            return rows
        once = np.empty(len(rows), np.uint32)
        self._batch.read_rows(i, once.ctypes.data)
        bags = Bags.of(once, limit=self._tables[i].rows)

        def hook(gradient: torch.Tensor) -> None:
            push().add_gradients(self._step, self._numbers[i], bags, gradient.numpy())

        rows.requires_grad_()
        rows.register_hook(hook)  # type: ignore[no-untyped-call]
        return rows

    def add_gradients(
        self, service: Service, sums: Sequence[int], gradients: Sequence[torch.Tensor | None]
    ) -> None:
        """Of the vectors of these tables, by their place in the batch."""
        whole: list[torch.Tensor | None] = [None] * len(self._queries)
        for i, gradient in zip(sums, gradients, strict=True):
            whole[i] = None if gradient is None else gradient.contiguous()
        addresses = [0 if one is None else one.data_ptr() for one in whole]
        service.native.add_gradients_of_batch(self._step, self._batch, addresses)


class _Sums(torch.autograd.Function):
    """Vectors that are sums of rows: their gradients leave autograd here."""

    @staticmethod
    def forward(
        ctx: Any,
        anchor: torch.Tensor,
        asked: Asked,
        push: Push,
        sums: list[int],
        vectors: list[torch.Tensor],
    ) -> tuple[torch.Tensor, ...]:
        """As they are; `anchor` makes them want gradients."""
        ctx.asked, ctx.push, ctx.sums = asked, push, sums
        ctx.set_materialize_grads(False)
        return tuple(vectors)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        """To the owners."""
        ctx.asked.add_gradients(ctx.push(), ctx.sums, gradients)
        return None, None, None, None, None


def _batch_of(
    queries: Mapping[int, Query], tables: Sequence[Table], specs: Sequence[TableSpec], exact: bool
) -> Batch:
    given = []
    for number, query in queries.items():
        table = tables[number]
        offsets, weights = query.offsets, query.weights
        given.append(
            (
                *(table.name, number, query.ids.numel(), query.ids.data_ptr(), query.bags),
                0 if offsets is None else offsets.data_ptr(),
                0 if weights is None else weights.data_ptr(),
                table.bag == "mean",
                exact or table.bag == "max" or query.weights_learn,
            )
        )
    try:
        return Batch(list(specs), given)
    except IndexError as error:
        raise NoSuchRowError(str(error)) from None
    except ValueError as error:
        raise InvalidBagsError(str(error)) from None
