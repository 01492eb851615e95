"""What ``ina bench training`` trains: the models of two examples, on what every machine has.

``digits``: the demo's CNN on scikit-learn's images. ``gpt2``: the small model of GPT-2's shape, on
the bytes of Python's own library.
"""

from __future__ import annotations

import importlib.util
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional

from ina.files import root

_HELD_OUT = 10
"""One of so many windows of the text is for the test."""
_TESTED_WINDOWS = 512
_DIGITS_BATCH, _GPT2_BATCH = 32, 2
"""Of a worker."""


class TrainedTask(Protocol):
    """A model, its data and its optimizer."""

    def net(self) -> nn.Module:
        """With random parameters, which follow from torch's seed."""
        ...

    def shards(self, net: nn.Module) -> Iterator[nn.Module]:
        """Parts of the net that FSDP2 gathers one at a time."""
        ...

    def optimizer(self, net: nn.Module) -> torch.optim.Optimizer:
        """Of all its parameters."""
        ...

    def batches(self, seed: int, rank: int, workers: int) -> Iterator[Any]:
        """Those of one worker, without end."""
        ...

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """A number."""
        ...

    def tested(self, rank: int, workers: int) -> Any:
        """A batch of what is held out: this worker's share; all have as much, or one more."""
        ...

    def hits(self, model: nn.Module, batch: Any) -> int | None:
        """How many of a batch are named correctly; None: it names nothing."""
        ...


class Digits:
    """The demo's."""

    def __init__(self) -> None:
        self._example = _example("ddp_digits")
        self._images, self._labels, *self._test = self._example.load_data()

    def net(self) -> nn.Module:
        """152 k parameters."""
        net: nn.Module = self._example.DigitsNet()
        return net

    def shards(self, net: nn.Module) -> Iterator[nn.Module]:
        """Both linear layers, which have most of them."""
        yield from (it for it in net.children() if isinstance(it, nn.Linear))

    def optimizer(self, net: nn.Module) -> torch.optim.Optimizer:
        """As in the demo."""
        return torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)

    def batches(self, seed: int, rank: int, workers: int) -> Iterator[Any]:
        """Epoch by epoch in an order that all ranks share."""
        shuffle = torch.Generator().manual_seed(1000 * seed)
        each = _DIGITS_BATCH * workers
        while True:
            order = torch.randperm(len(self._labels), generator=shuffle)
            for begin in range(rank * _DIGITS_BATCH, len(order) // each * each, each):
                batch = order[begin : begin + _DIGITS_BATCH]
                yield self._images[batch], self._labels[batch]

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """The cross entropy."""
        images, labels = batch
        return functional.cross_entropy(model(images), labels)

    def tested(self, rank: int, workers: int) -> Any:
        """Images and labels."""
        images, labels = self._test
        return images[rank::workers], labels[rank::workers]

    def hits(self, model: nn.Module, batch: Any) -> int | None:
        """Of the images."""
        images, labels = batch
        return int((model(images).argmax(1) == labels).sum())


class Text:
    """Layers of GPT-2 from bytes to bytes; two of them, 64 wide, have 120 k parameters."""

    def __init__(self, layers: int = 2, width: int = 64, heads: int = 4) -> None:
        self._shape = layers, width, heads
        self._example = _example("gpt2")
        text = b"".join(it.read_bytes() for it in sorted(_library().glob("*.py")))
        context = self._example.CONTEXT
        windows = torch.frombuffer(bytearray(text), dtype=torch.uint8)
        windows = windows[: len(text) // context * context].view(-1, context)
        is_test = torch.arange(len(windows)) % _HELD_OUT == 0
        self._windows, self._test = windows[~is_test], windows[is_test]

    def net(self) -> nn.Module:
        """The example's."""
        net: nn.Module = self._example.GPT2(*self._shape)
        return net

    def shards(self, net: nn.Module) -> Iterator[nn.Module]:
        """The blocks."""
        yield from net.get_submodule("blocks").children()

    def optimizer(self, net: nn.Module) -> torch.optim.Optimizer:
        """As large a step as such a small model bears."""
        return torch.optim.AdamW(net.parameters(), lr=3e-3, fused=True)

    def batches(self, seed: int, rank: int, workers: int) -> Iterator[Any]:
        """Windows by chance, each rank its own."""
        chance = torch.Generator().manual_seed(1009 * seed + rank)
        while True:
            chosen = torch.randint(len(self._windows), (_GPT2_BATCH,), generator=chance)
            yield self._windows[chosen].long()

    def loss(self, model: nn.Module, batch: Any) -> torch.Tensor:
        """The cross entropy of each next byte."""
        loss: torch.Tensor = model(batch)
        return loss

    def tested(self, rank: int, workers: int) -> Any:
        """Windows from all over the text."""
        spread = self._test[:: max(1, len(self._test) // _TESTED_WINDOWS)][:_TESTED_WINDOWS]
        return spread[rank::workers].long()

    def hits(self, model: nn.Module, batch: Any) -> int | None:
        """A byte is not named, but given a chance."""
        return None


def _library() -> Path:
    return Path(sysconfig.get_paths()["stdlib"])


def _example(name: str) -> Any:
    """The module of a file that ships beside the code."""
    path = root() / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"example_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TASKS: dict[str, Callable[[], TrainedTask]] = {"digits": Digits, "gpt2": Text}
"""By the name of the model."""
