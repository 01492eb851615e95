"""A job in a star whose ranks stop at any moment, and what they do together then."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ina.host.frozen import Frozen, export_of
from ina.host.recovery import Plan, plan
from ina.testing import numerics
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.parts import INT32, random_parts
from tests.worlds.recovering import finish, given, hand_on
from tests.worlds.virtual.cores import EPOCH, JOB
from tests.worlds.virtual.star import Star

VALUES = 64
DTYPES = (INT32, *numerics.FLOATS)


class Job:
    """Operations submitted by and by, until each rank freezes."""

    def __init__(
        self,
        star: Star,
        lengths: Sequence[int],
        seed: int,
        dtypes: Sequence[np.dtype[Any]] = DTYPES,
    ) -> None:
        self.star = star
        self.world_size = len(star.workers)
        self.submitted = [0] * self.world_size
        self.inputs: list[list[NDArray[Any]]] = []
        self.outputs: list[list[NDArray[Any]]] = []
        self.wanted: list[NDArray[Any]] = []
        self.ops = [("sum", "avg")[(seed + i) % 2] for i in range(len(lengths))]
        for i, (length, op) in enumerate(zip(lengths, self.ops, strict=True)):
            parts = random_parts(
                dtypes[(seed // 2 + i) % len(dtypes)], self.world_size, length, seed + i
            )
            self.wanted.append(numerics.all_reduce(parts, op, VALUES))
            self.inputs.append(parts)
            in_place = (seed + i) % 3 > 0
            self.outputs.append(parts if in_place else [np.zeros_like(part) for part in parts])
        self.results: list[dict[int, NDArray[Any]]] = [{} for _ in range(self.world_size)]

    def submit(self, rank: int) -> None:
        i = self.submitted[rank]
        self.submitted[rank] += 1
        array, out = self.inputs[i][rank], self.outputs[i][rank]
        self.star.submit(rank, i + 1, array, out, self.ops[i])

    def reuse_what_is_done(self) -> None:
        """As users do: take the result, then write to the memory."""
        for rank, done in enumerate(self.star.done):
            for operation in done:
                self.take(rank, operation)
            done.clear()

    def take(self, rank: int, operation: int) -> None:
        assert operation not in self.results[rank], "it ended twice"
        out = self.outputs[operation - 1][rank]
        self.results[rank][operation] = out.copy()
        for array in (out, self.inputs[operation - 1][rank]):
            array.view(np.uint8).fill(0xA5)

    def freeze(self) -> list[Frozen]:
        self.reuse_what_is_done()
        frozen = []
        for rank, worker in enumerate(self.star.workers):
            ticket = direct_ticket(
                "t", JOB, EPOCH, rank, self.world_size, 4, VALUES, "127.0.0.1", 1
            )
            submitted = worker.counters.tensors_submitted
            assert worker.freeze()
            frozen.append(Frozen(worker, export_of(ticket, submitted, worker), {}))
        return frozen

    def recover(self, frozen: list[Frozen]) -> Plan:
        """What the ranks do together; the exchange is a function call."""
        found = plan([one.export for one in reversed(frozen)])
        hand_on(found, frozen)
        for left in found.sums:
            op = self.ops[left.operation - 1]
            finish(
                *(left.operation, left.undone, frozen),
                partial(numerics.all_reduce, op=op, values=VALUES),
            )
            for rank, one in enumerate(frozen):
                if left.operation in {p.operation for p in one.export.pending}:
                    one.complete(left.operation)
                    self.take(rank, left.operation)
        self.finish_late(frozen, found.submitted)
        return found

    def finish_late(self, frozen: list[Frozen], common: int) -> None:
        """Operations that not all have submitted: whole, in order, as ranks come to them."""
        for operation in range(common + 1, len(self.ops) + 1):
            parts = [part.copy() for part in self.inputs[operation - 1]]
            result = numerics.all_reduce(parts, self.ops[operation - 1], VALUES)
            for rank, one in enumerate(frozen):
                if operation in self.results[rank]:
                    continue  # an empty one
                if operation <= self.submitted[rank]:
                    (span,) = one.spans(operation, ((0, -(-result.size // VALUES)),))
                    assert numerics.same_bits(given(one.inputs(operation, span)), parts[rank])
                    given(one.outputs(operation, span))[:] = result
                    one.complete(operation)
                else:
                    self.outputs[operation - 1][rank][:] = result
                self.take(rank, operation)

    def check(self) -> None:
        for rank in range(self.world_size):
            for operation, wanted in enumerate(self.wanted, start=1):
                got = self.results[rank][operation]
                assert numerics.same_bits(got, wanted), (rank, operation)
