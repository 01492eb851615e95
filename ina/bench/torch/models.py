"""What ``ina bench ddp`` trains: a small CNN for real, and the gradients of two large models.

The large ones have the parameters of ResNet-50 (He et al., 2015, as torchvision builds it) and of
GPT-2 small (Radford et al., 2019), layer by layer, but compute nothing: a layer's backward waits
for its share of ``compute_s``, as for an accelerator, and hands DDP gradients that lie in memory.
DDP's buckets, their order and their overlap with backward are torch's own.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

Shapes = list[list[tuple[int, ...]]]
"""Of the parameters, by layer, in the order of forward."""

_RESNET50_STAGES = ((64, 3), (128, 4), (256, 6), (512, 3))
_EXPANSION = 4


def resnet50_shapes(classes: int = 1000) -> Shapes:
    """25,557,032 parameters: convolutions without bias, each with a batch norm, and one linear."""
    layers: Shapes = [_convolution(3, 64, 7)]
    inputs = 64
    for width, blocks in _RESNET50_STAGES:
        for block in range(blocks):
            outputs = _EXPANSION * width
            layers += [_convolution(inputs, width, 1), _convolution(width, width, 3)]
            layers.append(_convolution(width, outputs, 1))
            if block == 0:
                layers.append(_convolution(inputs, outputs, 1))  # the shortcut
            inputs = outputs
    layers.append([(classes, inputs), (classes,)])
    return layers


def _convolution(inputs: int, outputs: int, kernel: int) -> list[tuple[int, ...]]:
    return [(outputs, inputs, kernel, kernel), (outputs,), (outputs,)]


def gpt2_shapes(
    layers: int = 12, width: int = 768, vocabulary: int = 50257, context: int = 1024
) -> Shapes:
    """124,439,808 parameters; the output weights are the token embedding's."""
    norm: list[tuple[int, ...]] = [(width,), (width,)]
    found: Shapes = [[(vocabulary, width), (context, width)]]
    for _ in range(layers):
        found.append([*norm, (width, 3 * width), (3 * width,), (width, width), (width,)])
        found.append([*norm, (width, 4 * width), (4 * width,), (4 * width, width), (width,)])
    found.append(norm)
    return found


class _Layer(torch.autograd.Function):
    """Passes its input on; its parameters' gradients are what ``source`` gives."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, source: Gradients, *parameters: torch.Tensor
    ) -> torch.Tensor:
        ctx.source, ctx.shapes = source, [parameter.shape for parameter in parameters]
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *outputs: torch.Tensor) -> Any:
        return outputs[0], None, *ctx.source.of(ctx.shapes)


class Gradients:
    """Random gradients of any shape, all from one piece of memory."""

    def __init__(self, most_elems: int, all_elems: int, compute_s: float, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.memory = torch.randn(most_elems, generator=generator)
        self._s_per_elem = compute_s / all_elems

    def of(self, shapes: list[torch.Size]) -> list[torch.Tensor]:
        """Those of a layer, after the time that it takes."""
        time.sleep(self._s_per_elem * sum(shape.numel() for shape in shapes))
        return [self.memory[: shape.numel()].view(shape) for shape in shapes]


def passed_on(x: torch.Tensor, gradients: Gradients, layer: nn.Module) -> torch.Tensor:
    """``x``, on which all parameters of a layer have their part; their gradients are those."""
    found: torch.Tensor = _Layer.apply(x, gradients, *layer.parameters())  # type: ignore[no-untyped-call]
    return found


class Synthetic(nn.Module):
    """A model of given parameter shapes."""

    def __init__(self, shapes: Shapes, compute_s: float, seed: int) -> None:
        super().__init__()
        sizes = [math.prod(shape) for layer in shapes for shape in layer]
        self.gradients = Gradients(max(sizes), sum(sizes), compute_s, seed)
        self.layers = nn.ModuleList(
            nn.ParameterList(nn.Parameter(torch.zeros(shape)) for shape in layer)
            for layer in shapes
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """A number, on which every parameter has its part."""
        x = x.requires_grad_()
        for layer in self.layers:
            x = passed_on(x, self.gradients, layer)
        return x.sum()


class DigitsNet(nn.Module):
    """The demo's: two convolutions and two linear layers, 152 k parameters, on 8x8 images."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Linear(64 * 4 * 4, 128), nn.ReLU(), nn.Linear(128, 10)),
        )

    def forward(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        """Images and labels to the cross entropy."""
        images, labels = batch
        return functional.cross_entropy(self.body(images), labels)


class Work:
    """A model, its input, and what one step of one worker counts."""

    def __init__(self, module: nn.Module, batch: Any, items: int, unit: str, bucket_mb: float):
        self.module, self.batch = module, batch
        self.items, self.unit, self.bucket_mb = items, unit, bucket_mb


def _digits(compute_s: float, seed: int) -> Work:
    torch.manual_seed(seed)
    images, labels = torch.rand(32, 1, 8, 8), torch.randint(10, (32,))
    # Small buckets, so that the first gradients travel while the others are being computed.
    return Work(DigitsNet(), (images, labels), 32, "images", 0.25)


def _resnet50(compute_s: float, seed: int) -> Work:
    return Work(Synthetic(resnet50_shapes(), compute_s, seed), torch.ones(1), 32, "images", 25)


def _gpt2(compute_s: float, seed: int) -> Work:
    return Work(Synthetic(gpt2_shapes(), compute_s, seed), torch.ones(1), 8192, "tokens", 25)


def _tiny(compute_s: float, seed: int) -> Work:
    shapes = gpt2_shapes(layers=1, width=64, vocabulary=512, context=32)
    return Work(Synthetic(shapes, compute_s, seed), torch.ones(1), 512, "tokens", 0.25)


MODELS: dict[str, Callable[[float, int], Work]] = {
    "digits": _digits,
    "resnet50": _resnet50,
    "gpt2": _gpt2,
    "tiny": _tiny,
}
"""By name: made of the seconds that a backward computes, and a seed."""
