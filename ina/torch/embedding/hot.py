"""Hot rows of a group: who asks for what is counted, and their gradients are all-reduced."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.distributed as dist

from ina.embed.errors import HostsDifferError
from ina.embed.hot import Asks, Rows, candidates, counts_of, hottest
from ina.embed.replicas import Replicas
from ina.embed.service import Service
from ina.embed.sharding import VALUE_BYTES, Table
from ina.errors import InaError
from ina.torch.embedding.gathering import gathered
from ina.torch.embedding.options import EmbeddingOptions

FIRST_STEPS = 10
"""After so many the first rows become hot, if refreshes are not more frequent."""


class Hot:
    """Of a module. What is done here is collective."""

    def __init__(
        self,
        service: Service,
        tables: Sequence[Table],
        group: dist.ProcessGroup | None,
        options: EmbeddingOptions,
    ) -> None:
        """None is hot; after some steps the first are."""
        self._service = service
        self._hosts = service.hosts
        self._group = group
        self._refresh_steps = options.refresh_steps
        self._most_bytes = options.most_hot_bytes
        self._row_bytes = [table.dim * VALUE_BYTES for table in tables]
        self._asks = [Asks() for _ in tables]
        self._since = 0
        self._next = min(FIRST_STEPS, options.refresh_steps)
        self._replicas = Replicas(service, self._next)

    def seen(self, number: int, rows: Rows) -> None:
        """A step has asked for these rows of a table, each once."""
        self._asks[number].add(rows)

    def changes_at(self, step: int) -> bool:
        """Whether other rows are hot from this step on."""
        return step == self._next

    def end_step(self, step: int, lr: float) -> None:
        """Sum and apply the gradients of this step.

        Raises HostLostError; if no host is lost, what torch's collectives raise.
        """
        gradients = torch.from_numpy(self._replicas.gradients())
        with self._naming_who_is_lost(step + 1):
            if gradients.numel() > 0:
                dist.all_reduce(gradients, group=self._group)
                self._replicas.apply(gradients.numpy(), lr)
            if self.changes_at(step + 1):
                self._change(step + 1)

    @contextlib.contextmanager
    def _naming_who_is_lost(self, version: int) -> Iterator[None]:
        """Of a rank that is gone torch's collectives say that some connection is closed."""
        try:
            yield
        except RuntimeError as error:
            if not isinstance(error, InaError):
                self._service.look_for_lost(version)
            raise

    def _change(self, step: int) -> None:
        counts = [asks.counts() for asks in self._asks]
        steps, self._since = step - self._since, step
        own = [candidates(one, self._hosts, steps) for one in counts]
        said = gathered((self._replicas.digest(), own), self._hosts, self._group)
        for rank, (digest, _) in enumerate(said):
            if digest != said[0][0]:
                raise HostsDifferError(f"step {step}: ranks 0 and {rank} have other hot rows")
        rows = [
            np.unique(np.concatenate([one[table] for _, one in said])) for table in self._tables
        ]
        own_counts = [counts_of(counts[table], rows[table]) for table in self._tables]
        all_counts = gathered(own_counts, self._hosts, self._group)
        totals = [
            (rows[table], np.sum([one[table] for one in all_counts], axis=0))
            for table in self._tables
        ]
        wanted = hottest(
            totals,
            self._row_bytes,
            hosts=self._hosts,
            steps=steps,
            most_bytes=self._most_bytes,
        )
        self._next = step + self._refresh_steps
        self._replicas.change(step, wanted, self._next)

    @property
    def _tables(self) -> range:
        return range(len(self._asks))

    def settle(self) -> None:
        """Before rows are read as their owners have them."""
        self._replicas.settle()

    def forget(self, step: int) -> None:
        """None is hot any more, before rows are set."""
        self._replicas.change(step, [np.empty(0, np.uint32) for _ in self._tables], self._next)
