"""A plan of integers out of a network of floats: linear layers with relu in between.

Values behind each layer are fixed point: ``float = int / scale``. A layer's weights get the scale
at which the largest is `weight_bits` wide, and its shift is the least with which the values that a
sample of inputs makes are `value_bits` wide; larger ones are bounded. Answers of the plan are
compared with the floats', on that sample: the accuracy that is kept is a number, not a promise.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ina.infer.errors import PlanError
from ina.infer.plan import InferencePlan, InputSpec, PlanSpec, StageSpec, checked
from ina.infer.shapes import LIMIT

Array = NDArray[Any]
Floats = NDArray[np.float64]
SplitName = Literal["", "rows", "columns", "owners"]


@dataclass(frozen=True)
class Layer:
    """``y = weights @ x + bias``, and relu behind all but the last."""

    weights: Floats  # (out, in)
    bias: Floats  # (out,)


@dataclass(frozen=True)
class Precision:
    """How fine the integers are."""

    input_bits: int = 8
    value_bits: int = 14
    weight_bits: int = 10


def layers_of(model: object) -> list[Layer]:
    """Of a mapping of arrays as ``state_dict()`` gives, or of what has one, as ``nn.Sequential``.

    Its keys end in ``weight`` or ``bias``; layers are in the order of their numbers or, without
    numbers, in the mapping's. Raises PlanError: something else is in it, or layers do not fit.
    """
    state = model if isinstance(model, Mapping) else _state_of(model)
    weights: dict[str, Floats] = {}
    biases: dict[str, Floats] = {}
    for key, value in state.items():
        prefix, _, kind = str(key).rpartition(".")
        if kind not in ("weight", "bias"):
            raise PlanError(f"{key}: want linear layers alone: NAME.weight and NAME.bias")
        (weights if kind == "weight" else biases)[prefix] = _floats(value)
    names = list(weights)
    if all(re.fullmatch(r"(.*\D)?\d+", name) for name in names):
        names.sort(key=lambda name: int(re.findall(r"\d+", name)[-1]))
    layers: list[Layer] = []
    for name in names:
        layer = Layer(weights[name], biases.get(name, np.zeros(len(weights[name]))))
        if layer.weights.ndim != 2 or layer.bias.shape != layer.weights.shape[:1]:
            raise PlanError(f"{name}: weights of shape {layer.weights.shape}: want a linear layer")
        if layers and layers[-1].weights.shape[0] != layer.weights.shape[1]:
            raise PlanError(f"{name}: takes {layer.weights.shape[1]} values, the layer before makes"
                            f" {layers[-1].weights.shape[0]}")  # fmt: skip
        layers.append(layer)
    if not layers:
        raise PlanError("there is no layer")
    return layers


def _state_of(model: object) -> Mapping[str, Any]:
    of = getattr(model, "state_dict", None)
    if of is None:
        raise PlanError(f"{type(model).__name__}: want arrays by name, or what has a state_dict()")
    known = {"Sequential", "Linear", "ReLU", "Flatten", "Dropout", "Identity"}
    for module in model.modules():  # type: ignore[attr-defined]
        if type(module).__name__ not in known:
            raise PlanError(f"{type(module).__name__}: a plan of layers knows {sorted(known)}")
    state: Mapping[str, Any] = of()
    return state


def _floats(value: Any) -> Floats:
    """Of an array, or a tensor of any device."""
    for step in ("detach", "cpu"):
        value = getattr(value, step, lambda value=value: value)()
    array = np.asarray(value, np.float64)
    if not np.isfinite(array).all():
        raise PlanError("weights are not all finite")
    return array


def float_answers(layers: Sequence[Layer], samples: Array) -> Floats:
    """What the floats make of samples, of shape (samples, out)."""
    values = samples.astype(np.float64)
    for number, layer in enumerate(layers):
        values = values @ layer.weights.T + layer.bias
        if number + 1 < len(layers):
            values = np.maximum(values, 0)
    return values


def quantise(
    name: str,
    layers: Sequence[Layer],
    samples: Array,
    nodes: Sequence[str],
    precision: Precision = Precision(),
    *,
    argmax: bool = True,
    block: int = 8,
) -> InferencePlan:
    """The plan. `samples`: of the kind that will be asked, of shape (samples, width).

    Layers are split by rows and by columns in turns, so that values stay at their node in between.
    Raises PlanError.
    """
    if samples.ndim != 2 or samples.shape[1] != layers[0].weights.shape[1] or not samples.size:
        want = layers[0].weights.shape[1]
        raise PlanError(f"samples of shape {samples.shape}: want (samples, {want})")
    values = samples.astype(np.float64)
    most = 2 ** (precision.input_bits - 1) - 1
    scale = most / max(float(np.abs(values).max()), 1e-12)
    given = InputSpec(
        width=values.shape[1], low=-most if values.min() < 0 else 0, high=most, scale=scale
    )
    arrays: dict[str, Array] = {}
    stages: list[StageSpec] = []
    bound = float(most)  # of the values that come to a layer
    for number, layer in enumerate(layers):
        is_last = number + 1 == len(layers)
        values = values @ layer.weights.T + layer.bias
        made = _integers(layer, scale, bound, values, precision, is_last=is_last)
        stage = f"layer{number}"
        arrays[f"{stage}.weight"], arrays[f"{stage}.bias"] = made.weights, made.bias
        stages.append(
            StageSpec(
                name=stage,
                kernel="linear",
                weights=f"{stage}.weight",
                bias=f"{stage}.bias",
                shift=made.shift,
                clip=None if is_last else (-made.most, made.most),
                split=_split(number, layer, len(nodes)),
            )
        )
        scale, bound = made.scale, float(made.most)
        if not is_last:
            values = np.maximum(values, 0)
            stages.append(StageSpec(name=f"relu{number}", kernel="relu"))
    if argmax:
        stages.append(StageSpec(name="best", kernel="argmax"))
    spec = PlanSpec(name=name, nodes=tuple(nodes), input=given, stage=tuple(stages), block=block)
    return checked(InferencePlan(spec, arrays))


def _split(number: int, layer: Layer, nodes: int) -> SplitName:
    made, taken = layer.weights.shape
    if nodes == 1:
        return ""
    if number % 2 == 0 and made >= nodes:
        return "rows"
    return "columns" if taken >= nodes else ""


@dataclass(frozen=True)
class _Integers:
    weights: Array
    bias: Array
    shift: int
    scale: float  # of what comes out
    most: int


def _integers(
    layer: Layer, scale: float, bound: float, values: Floats, precision: Precision, *, is_last: bool
) -> _Integers:
    """`values`: what the floats make of the sample here; `bound`: of what comes, as integers."""
    largest = max(float(np.abs(layer.weights).max()), 1e-12)
    weight_scale = (2 ** (precision.weight_bits - 1) - 1) / largest
    # No order of addition may leave int32: where it might, weights are coarser.
    reach = np.abs(layer.weights).sum(axis=1).max() * bound + np.abs(layer.bias).max() * scale
    weight_scale = min(weight_scale, 0.9 * LIMIT / max(float(reach), 1e-12))
    weights = np.rint(layer.weights * weight_scale).astype(np.int64)
    bias = np.rint(layer.bias * scale * weight_scale).astype(np.int64)
    made_scale = scale * weight_scale
    most = 2 ** (precision.value_bits - 1) - 1
    peak = max(float(np.abs(values).max()) * made_scale, 1.0)
    shift = 0 if is_last else min(max(math.ceil(math.log2(peak / most)), 0), 31)
    return _Integers(weights, bias, shift, made_scale / 2**shift, most)
