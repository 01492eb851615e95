"""Embedding bags whose rows lie on the ranks of a group."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from ina.embed.errors import TableError
from ina.embed.service import Service
from ina.embed.sharding import Table
from ina.errors import InaError
from ina.torch.embedding.asked import Asked, Push, query_of
from ina.torch.embedding.gathering import gathered
from ina.torch.embedding.hot import Hot
from ina.torch.embedding.meeting import start
from ina.torch.embedding.optimizer import EmbeddingOptimizer, Name, native_optimizer
from ina.torch.embedding.options import EmbeddingOptions

Given = torch.Tensor | tuple[torch.Tensor | None, ...]
"""Of a table: ids of shape (bags, rows a bag), or (ids, offsets[, weights])."""
DEFAULTS = EmbeddingOptions()
_LINGER_S = 0.5  # whose acknowledgement was lost asks again
_LAST_STEP_S = 10.0


class EmbeddingBags(nn.Module):
    """Tables whose rows are pooled and updated by the ranks that own them.

    It has no parameters, so DDP leaves it alone. A step begins with forward passes and ends with
    ``optimizer.step()`` on every rank; all forward passes of a step read the same version of the
    rows, and all ranks take the same steps. Without an optimiser rows never change.

    Args:
        tables: the same on all ranks, in the same order.
        group: default: all ranks.
        exact: rows are fetched and pooled here, in the order and so with the bits of
            ``nn.EmbeddingBag``. Else bags may be added up by the owners of their rows, where that
            is less to send; sums then have the same bits in every run, but may differ from torch's
            by rounding.
        options: refreshes of hot rows, caches, patience.

    Collective. Raises on every rank TableError, HostsDifferError or TooLittleMemoryError.
    """

    def __init__(
        self,
        tables: Sequence[Table],
        *,
        group: dist.ProcessGroup | None = None,
        exact: bool = False,
        options: EmbeddingOptions = DEFAULTS,
    ) -> None:
        """Start this rank's service."""
        super().__init__()
        self.tables = tuple(tables)
        self._numbers = {table.name: number for number, table in enumerate(tables)}
        self._exact = exact
        self._group = group
        self._hosts = dist.get_world_size(group) if dist.is_initialized() else 1
        self.service = start(tables, group, options.patience_s)
        self._specs = self.service.specs
        self._cache_bytes = options.cache_bytes
        self.service.native.resize_cache(options.cache_bytes)
        self._progress = _Progress()
        self._trains = False
        self._options = options
        self._hot: Hot | None = None
        self._prefetched: tuple[int, int, Asked] | None = None
        self._at_end = weakref.finalize(self, _end, self.service, self._progress)

    @property
    def steps(self) -> int:
        """That this rank has ended: the version that it reads."""
        return self._progress.steps

    def forward(self, batch: Mapping[str, Given]) -> dict[str, torch.Tensor]:
        """Vectors of shape (bags, dim) by table, as ``nn.EmbeddingBag`` makes them.

        Args:
            batch: for each table that is wanted ids of shape (bags, rows a bag), or ids and
                offsets, or these and weights, integers and float32 in CPU memory.

        Raises NoSuchRowError, InvalidBagsError, TableError before anything is sent; HostLostError.
        """
        step = self.steps
        push = self._push_of(step) if self._trains and torch.is_grad_enabled() else None
        asked = self._taken(batch) or self._ask(batch, step)
        if push is not None and self._hot is not None:
            for number, rows in asked.rows():
                self._hot.seen(number, rows)
        return asked.vectors(push)

    def prefetch(self, batch: Mapping[str, Given]) -> None:
        """Ask now for what the next step's first forward pass will be given, the same object.

        To be called before the optimiser's step; owners answer once their rows are of that step.
        """
        step = self.steps + 1 if self._trains else self.steps
        if self._hot is not None and self._hot.changes_at(step):
            return  # where rows come from is not known yet
        self._prefetched = (id(batch), step, self._ask(batch, step))

    def optimizer(
        self,
        name: Name,
        lr: float,
        *,
        eps: float = 1e-10,
        initial_accumulator_value: float = 0.0,
    ) -> EmbeddingOptimizer:
        """What updates the rows, at their owners; one for all tables, before the first step.

        "sgd"; "adagrad", a sum of squares a value; "rowwise_adagrad", one a row. On all ranks the
        same. Raises TableError.
        """
        if self._trains:
            raise TableError("these embeddings have an optimizer already")
        self.service.set_optimizer(native_optimizer(name, eps, initial_accumulator_value))
        self._trains = True
        self._cache_bytes = 0  # each step reads other rows
        self.service.native.resize_cache(0)
        if self._hosts > 1 and self._options.refresh_steps > 0:
            self._hot = Hot(self.service, self.tables, self._group, self._options)
        return EmbeddingOptimizer(self._end_step, lr)

    def load_embedding_bag(self, name: str, bag: nn.EmbeddingBag) -> None:
        """Take over the weights of a plain one, which every rank has."""
        self.load_weight(name, bag.weight)

    def load_weight(self, name: str, weight: torch.Tensor) -> None:
        """Set a table's rows; each rank keeps those that it owns, of (rows, dim) float32.

        Raises TableError: another shape. To be called on all ranks, between steps.
        """
        number = self._number(name)
        table = self.tables[number]
        if tuple(weight.shape) != (table.rows, table.dim) or weight.dtype != torch.float32:
            raise TableError(
                f"table {name!r}: weight {weight.dtype} {tuple(weight.shape)}: want float32"
                f" {(table.rows, table.dim)}"
            )
        self._settle()
        self._forget()
        own = self.service.rows(number)
        self.service.write(number, weight.detach()[torch.from_numpy(own)].numpy())
        gathered(None, self._hosts, self._group)

    def weight(self, name: str) -> torch.Tensor:
        """A table's rows, whole, on every rank: (rows, dim). Collective; for tables that fit."""
        number = self._number(name)
        self._settle()
        own = (self.service.rows(number), self.service.read(number)[0])
        whole = np.empty((self.tables[number].rows, self.tables[number].dim), np.float32)
        for rows, values in gathered(own, self._hosts, self._group):
            whole[rows] = values
        return torch.from_numpy(whole)

    def close(self) -> None:
        """End this rank's service once all ranks are here. Collective."""
        if self._at_end.detach() is None:
            return
        self.service.wait_for_version(self.steps)
        gathered(None, self._hosts, self._group)
        self.service.close()

    def _number(self, name: str) -> int:
        if name not in self._numbers:
            raise TableError(f"table {name!r}: there are {', '.join(self._numbers)}")
        return self._numbers[name]

    def _ask(self, batch: Mapping[str, Given], step: int) -> Asked:
        queries = {}
        for name, given in batch.items():
            parts: Any = (given,) if isinstance(given, torch.Tensor) else given
            queries[self._number(name)] = query_of(name, *parts)
        return Asked(self.service, step, queries, self.tables, self._specs, self._exact)

    def _taken(self, batch: Mapping[str, Given]) -> Asked | None:
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is None or prefetched[:2] != (id(batch), self.steps):
            return None
        return prefetched[2]

    def _push_of(self, step: int) -> Push:
        def push() -> Service:
            if step != self.steps:
                raise TableError(f"backward of step {step}, and {self.steps} have ended")
            return self.service

        return push

    def _end_step(self, lr: float) -> None:
        self.service.end_step(self.steps, lr)
        if self._hot is not None:
            self._hot.end_step(self.steps, lr)
        self._progress.steps += 1

    def _forget(self) -> None:
        """Rows are about to be set: no rank has one of another rank any more. Collective."""
        self.service.native.resize_cache(self._cache_bytes)
        if self._hot is not None:
            self._hot.forget(self.steps)
        gathered(None, self._hosts, self._group)

    def _settle(self) -> None:
        """This rank's rows are as of the step that is next."""
        self.service.wait_for_version(self.steps)
        if self._hot is not None:
            self._hot.settle()

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        self._settle()
        for number, table in enumerate(self.tables):
            values, state = self.service.read(number)
            own = f"{prefix}{table.name}"
            destination[f"{own}.rows"] = torch.from_numpy(self.service.rows(number))
            destination[f"{own}.weight"] = torch.from_numpy(values)
            destination[f"{own}.state"] = torch.from_numpy(state)

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        super()._load_from_state_dict(
            {}, prefix, local_metadata, False, missing_keys, unexpected_keys, error_msgs
        )
        self._settle()
        self._forget()
        for number, table in enumerate(self.tables):
            keys = [f"{prefix}{table.name}.{part}" for part in ("rows", "weight", "state")]
            absent = [key for key in keys if key not in state_dict]
            missing_keys.extend(absent)
            if absent:
                continue
            rows, weight, state = (state_dict[key].numpy() for key in keys)
            if not np.array_equal(rows, self.service.rows(number)):
                error_msgs.append(
                    f"table {table.name!r}: this rank has other rows than were saved; load_weight()"
                    " takes a whole table"
                )
                continue
            self.service.write(number, weight, state)
        gathered(None, self._hosts, self._group)


class EmbeddingBag(EmbeddingBags):
    """One table, with the call of ``nn.EmbeddingBag``: ids, offsets, weights; and its modes."""

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        *,
        mode: str = "mean",
        group: dist.ProcessGroup | None = None,
        exact: bool = False,
        options: EmbeddingOptions = DEFAULTS,
    ) -> None:
        """As :class:`EmbeddingBags`'."""
        table = Table("weight", num_embeddings, embedding_dim, bag=mode)  # type: ignore[arg-type]
        super().__init__(
            [table],
            group=group,
            exact=exact,
            options=options,
        )

    def forward(  # type: ignore[override]
        self,
        input: torch.Tensor,
        offsets: torch.Tensor | None = None,
        per_sample_weights: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Vectors of shape (bags, dim). Raises as :meth:`EmbeddingBags.forward`."""
        if input.dim() == 2 and per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
        return super().forward({"weight": (input, offsets, per_sample_weights)})["weight"]


@dataclass
class _Progress:
    """Outlives its module."""

    steps: int = 0


def _end(service: Service, progress: _Progress) -> None:
    """Others may still wait for this rank's last gradients to be acknowledged."""
    if progress.steps:
        with contextlib.suppress(InaError):
            service.wait_for_version(progress.steps, _LAST_STEP_S)
            time.sleep(_LINGER_S)
    service.close()
