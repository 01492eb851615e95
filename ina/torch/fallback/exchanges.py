"""What goes over Gloo for each kind of tensor, in one collective or in two that follow each other.

A float tensor takes two, as over the network: ranks agree on its chunks' exponents, then sum
integers (:mod:`ina.host.word_sum`). So the result has the network's bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch.distributed import Work

from ina.host.word_sum import WordSum
from ina.protocol.collective import Reduction
from ina.torch.dense import memory_of, octets, writing


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

    def begin(self, peers: Starter, check: Callable[[], object]) -> None:
        """Start all of its collectives; this may wait for those before the last.

        ``check`` raises once the tensor's memory may be another's; after that nothing is made of
        it. Raises that and RuntimeError, as Gloo does.
        """

    def finish(self, check: Callable[[], object]) -> None:
        """Wait for the result, and take it to where it belongs. Raises as begin() does."""


class Least:
    """The least of all ranks' numbers."""

    def __init__(self, numbers: torch.Tensor) -> None:
        self._numbers = numbers
        self._work: Work | None = None

    def begin(self, peers: Starter, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        self._work = peers.start_least(self._numbers)

    def finish(self, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        assert self._work is not None
        self._work.wait()


class IntegerSum:
    """int32, which Gloo sums as the network does.

    Of none nothing is sent, as of no floats: ranks that gave that to the network before it was lost
    have had it since, and take no part.
    """

    def __init__(self, tensor: torch.Tensor, op: Reduction, workers: int) -> None:
        self._tensor, self._op, self._workers = tensor, op, workers
        self._work: Work | None = None

    def begin(self, peers: Starter, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        if self._tensor.numel():
            self._work = peers.start_sum(memory_of(self._tensor))

    def finish(self, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        if self._work is None:
            return
        self._work.wait()
        check()
        if self._op is Reduction.AVERAGE:
            with writing(self._tensor):
                memory_of(self._tensor).div_(self._workers, rounding_mode="trunc")


class Union:
    """Bytes, of which each is some rank's, and 0 on the others."""

    def __init__(self, parts: torch.Tensor) -> None:
        """``parts``: uint8."""
        self._parts = parts
        self._work: Work | None = None

    def begin(self, peers: Starter, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        if self._parts.numel():
            self._work = peers.start_sum(self._parts)

    def finish(self, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        if self._work is not None:
            self._work.wait()


class Delivered:
    """One whose result is not where it belongs yet."""

    def __init__(self, exchange: Exchange, deliver: Callable[[], object]) -> None:
        self._exchange, self._deliver = exchange, deliver

    def begin(self, peers: Starter, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        self._exchange.begin(peers, check)

    def finish(self, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        self._exchange.finish(check)
        check()
        self._deliver()


class Unmade:
    """One that could not be made: it fails where the others begin theirs."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def begin(self, peers: Starter, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        raise self._error

    def finish(self, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        raise self._error


PART_WORDS = 1 << 20
"""Gloo sums so many while the next are made; the same on all ranks."""


class FloatSum:
    """Floats, as words."""

    def __init__(self, tensor: torch.Tensor, sum_: WordSum) -> None:
        """``tensor``: the chunks of ``sum_``, one after the other."""
        # Past autograd, which a thread that delivers has no part in.
        self._values: NDArray[np.uint8] = octets(tensor).numpy()
        self._sum = sum_
        self._parts: list[_Part] = []

    def begin(self, peers: Starter, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        if self._sum.chunks == 0:
            return
        codes = self._sum.codes(self._values)
        peers.start_most(torch.from_numpy(codes)).wait()
        chunk = size_bytes = 0
        for sum_ in self._sum.parts(PART_WORDS):
            check()
            values = self._values[size_bytes : size_bytes + sum_.size_bytes]
            agreed = codes[chunk : chunk + sum_.chunks]
            words = sum_.words(values, agreed)
            work = peers.start_sum(torch.from_numpy(words))
            self._parts.append(_Part(sum_, values, agreed, words, work))
            size_bytes, chunk = size_bytes + sum_.size_bytes, chunk + sum_.chunks

    def finish(self, check: Callable[[], object]) -> None:
        """See :class:`Exchange`."""
        for part in self._parts:
            part.work.wait()
            check()
            part.sum.results(part.words, part.codes, part.values)


class _Part(NamedTuple):
    """Some chunks, on their way."""

    sum: WordSum
    values: NDArray[np.uint8]
    codes: NDArray[np.uint8]
    words: NDArray[np.int32]
    work: Work
