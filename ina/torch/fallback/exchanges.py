"""What goes over Gloo for each kind of tensor, in one collective or in two that follow each other.

A float tensor takes two, as over the network: ranks agree on its chunks' exponents, then sum
integers (:mod:`ina.host.word_sum`). So the result has the network's bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.distributed import Work

from ina.host.word_sum import WordSum
from ina.protocol.collective import Reduction
from ina.torch.dense import memory_of, writing


class Starter(Protocol):
    """What starts one collective of each kind, in place; all ranks call the same in turn."""

    def start_sum(self, tensor: torch.Tensor) -> Work:
        """The sum over the ranks."""

    def start_least(self, tensor: torch.Tensor) -> Work:
        """The least over the ranks of each element."""

    def start_most(self, tensor: torch.Tensor) -> Work:
        """The most."""


class Exchange(Protocol):
    """All ranks begin the same ones in the same order, one after the other."""

    def begin(self, peers: Starter, check: Callable[[], object]) -> Work | None:
        """Start the last collective, once those before it have ended; None: there is nothing to do.

        ``check`` raises once the tensor's memory may be another's; after that nothing is made of
        it. Raises that and RuntimeError, as Gloo does.
        """

    def deliver(self) -> None:
        """After the work that begin() returned: take the result to where it belongs."""


class Least:
    """The least of all ranks' numbers."""

    def __init__(self, numbers: torch.Tensor) -> None:
        self._numbers = numbers

    def begin(self, peers: Starter, check: Callable[[], object]) -> Work:
        """See :class:`Exchange`."""
        return peers.start_least(self._numbers)

    def deliver(self) -> None:
        """It is there."""


class IntegerSum:
    """int32, which Gloo sums as the network does."""

    def __init__(self, tensor: torch.Tensor, op: Reduction, workers: int) -> None:
        self._tensor, self._op, self._workers = tensor, op, workers

    def begin(self, peers: Starter, check: Callable[[], object]) -> Work:
        """See :class:`Exchange`."""
        return peers.start_sum(memory_of(self._tensor))

    def deliver(self) -> None:
        """See :class:`Exchange`."""
        if self._op is Reduction.AVERAGE:
            with writing(self._tensor):
                memory_of(self._tensor).div_(self._workers, rounding_mode="trunc")


class FloatSum:
    """Floats, as words."""

    def __init__(self, tensor: torch.Tensor, sum_: WordSum) -> None:
        """``tensor``: the chunks of ``sum_``, one after the other."""
        # Past autograd, which a thread that delivers has no part in.
        octets = memory_of(tensor).detach().view(-1).view(torch.uint8)
        self._values: NDArray[np.uint8] = octets.numpy()
        self._sum = sum_
        self._codes, self._words = np.empty(0, np.uint8), np.empty(0, np.int32)

    def begin(self, peers: Starter, check: Callable[[], object]) -> Work | None:
        """See :class:`Exchange`."""
        if self._sum.elems == 0:
            return None
        self._codes = self._sum.codes(self._values)
        peers.start_most(torch.from_numpy(self._codes)).wait()
        check()
        self._words = self._sum.words(self._values, self._codes)
        return peers.start_sum(torch.from_numpy(self._words))

    def deliver(self) -> None:
        """See :class:`Exchange`."""
        if self._sum.elems > 0:
            self._sum.results(self._words, self._codes, self._values)
