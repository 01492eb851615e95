"""Jobs whose gradients go by one of PyTorch's hooks with feedback: two sums a bucket, and state.

The hooks are those of :mod:`ina.torch`, so PyTorch must be there. Each rank has one, whose sums go
over the virtual network. What must come of it is what the same hooks make of the sums of the
reference model, step by step.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ina.host.arrays import Array
from ina.protocol.coding import CODINGS
from ina.sim.awaited import Found
from ina.sim.errors import ScenarioError
from ina.sim.rank import Rank
from ina.sim.scenario import JobSpec
from ina.testing import packed

Gradients: TypeAlias = Callable[[int, int], list[Array]]
"""Of a step's buckets, by step and rank: new arrays, float32."""


def check_installed() -> None:
    """Raises :class:`ScenarioError`: PyTorch is not there."""
    if importlib.util.find_spec("torch") is None:
        raise ScenarioError("a hook is PyTorch's, which is not there: pip install torch")


@dataclass
class _OnItsWay:
    begun: Any
    first: Found
    second: Found | None = None


class HookedJob:
    """The hooks of a job's ranks, over all of its incarnations."""

    def __init__(self, spec: JobSpec, values_per_packet: int, gradients: Gradients) -> None:
        """``spec``: with a hook. Raises :class:`ScenarioError`: PyTorch is not there."""
        check_installed()
        self._spec, self._values, self._gradients = spec, values_per_packet, gradients
        self._sizes = [it.elems for it in spec.tensors for _ in range(it.count)]
        self._saved: dict[tuple[int, int], dict[str, Any]] = {}
        """By rank and step that follows: what a checkpoint has."""
        self._references = [self._hook(rank) for rank in range(spec.workers)]
        self._right: list[list[Array]] = []
        """By step: of each bucket."""

    def hook(self, rank: int, first_step: int) -> Any:
        """Of a process that begins with that step."""
        made = self._hook(rank)
        if first_step:
            made.load(self._saved[rank, first_step])
        return made

    async def step(self, rank: Rank, hook: Any, step: int) -> list[Array]:
        """What the rank gets of each bucket. Raises what :meth:`Rank.submit` does."""
        number = rank.seat.rank
        buckets = self._gradients(step, number)
        pending: list[_OnItsWay] = []
        hook.begin_step()
        for gradients in buckets:
            begun, what = hook.begin(gradients)
            pending.append(_OnItsWay(begun, _submit(rank, what)))
            if len(pending) > 1:
                await self._send(rank, hook, pending[-2])
        await self._send(rank, hook, pending[-1])
        hook.end_step()
        for one in pending:
            if one.second is not None:
                await one.second
            hook.write(one.begun)
        self._saved[number, step + 1] = hook.state()
        return buckets

    async def _send(self, rank: Rank, hook: Any, one: _OnItsWay) -> None:
        """The second sum of a bucket, once its first has come."""
        await one.first
        what = hook.second(one.begun)
        if what is not None:
            one.second = _submit(rank, what)

    def right(self, step: int) -> list[Array]:
        """What each rank must get of each bucket, bit for bit."""
        while len(self._right) <= step:
            self._right.append(self._reference(len(self._right)))
        return self._right[step]

    def _reference(self, step: int) -> list[Array]:
        ranks = [self._gradients(step, rank) for rank in range(self._spec.workers)]
        found = []
        for hook in self._references:
            hook.begin_step()
        for parts in zip(*ranks, strict=True):
            begun = [hook.begin(part) for hook, part in zip(self._references, parts, strict=True)]
            self._sum([first for _, first in begun])
            seconds = [
                hook.second(one) for hook, (one, _) in zip(self._references, begun, strict=True)
            ]
            if seconds[0] is not None:
                self._sum(seconds)
            for hook, (one, _) in zip(self._references, begun, strict=True):
                hook.write(one)
            found.append(parts[0])
        for hook in self._references:
            hook.end_step()
        return found

    def _sum(self, parts: list[Any]) -> None:
        """As the reference model does, in place."""
        coding = CODINGS[parts[0].wire]
        arrays = [part.array for part in parts]
        with np.errstate(invalid="ignore"):
            total = packed.all_reduce(arrays, parts[0].op, self._values, coding, 1)
        for array in arrays:
            array[:] = total

    def _hook(self, rank: int) -> Any:
        # It imports torch, which takes seconds, and need not be there for anything else.
        from ina.torch.virtual import VirtualHook

        return VirtualHook(self._spec.hook, self._sizes, rank, self._spec.workers)


def _submit(rank: Rank, what: Any) -> Found:
    return rank.submit(what.array, what.op, what.array, wire=what.wire)
