"""A plan of inference as a file: stages, the nodes that they run at, and where weights are."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from ina.document import DocumentError, convert
from ina.infer.errors import PlanError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

Array = NDArray[Any]
KernelName = Literal["linear", "relu", "add", "embed", "neighbours", "frontier", "fold", "argmax"]
SplitName = Literal["", "rows", "columns", "owners"]
MOST_NODES = 32
"""As many workers a switch sums."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


class InputSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is asked: int32 values, `width` of each sample."""

    width: int
    low: int
    high: int
    scale: float = 1.0
    """Floats are multiplied by it, and rounded."""


class StageSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One stage. Names of arrays are those of the plan's arrays."""

    name: str
    kernel: KernelName
    nodes: tuple[str, ...] = ()
    """Where it runs; none named: as is usual for the kernel."""
    split: SplitName = ""
    weights: str = ""
    """``linear``: integers of shape (out, in)."""
    bias: str = ""
    shift: int = 0
    """``linear``: so many bits are dropped behind weights and bias, rounding down."""
    clip: tuple[int, int] | None = None
    """``linear``: then bounded by these."""
    table: str = ""
    """``embed``, ``neighbours``: integers of shape (rows, width)."""
    graph: str = ""
    """``neighbours``, ``frontier``: NAME.indptr and NAME.indices among the arrays."""
    fanout: int = 0
    """``neighbours``, ``frontier``: at most so many neighbours of each vertex."""
    seed: int = 0
    with_self: bool = False
    """``neighbours``: the vertex's own row in front."""
    of: str = ""
    """``add``: the earlier stage whose values are added."""


class PlanSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The file."""

    name: str
    nodes: tuple[str, ...]
    input: InputSpec
    stage: tuple[StageSpec, ...]
    entry: str = ""
    """Where requests go; by default the first node."""
    block: int = 8
    """Samples that travel together."""
    window: int = 64
    """Blocks that are under way at most, a multiple of 64."""
    packet_values: int = 256
    """int32 in a datagram, at most."""
    arrays: str = ""
    """An .npz, beside the file; by default of its name."""


@dataclass(frozen=True)
class InferencePlan:
    """A plan and its arrays."""

    spec: PlanSpec
    arrays: Mapping[str, Array]

    @property
    def entry(self) -> int:
        """Number of the node where requests go."""
        return self.spec.nodes.index(self.spec.entry) if self.spec.entry else 0

    @property
    def digest(self) -> int:
        """32 bits of all that answers depend on."""
        digest = hashlib.sha256(msgspec.json.encode(self.spec))
        for name in sorted(self.arrays):
            array = np.ascontiguousarray(self.arrays[name])
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(array.tobytes())
        return int.from_bytes(digest.digest()[:4], "little")

    def array(self, stage: StageSpec, key: str) -> Array:
        """What the stage names by this key. Raises PlanError."""
        name = getattr(stage, key)
        return self.named(stage, key, name)

    def named(self, stage: StageSpec, key: str, name: str) -> Array:
        """An array of integers. Raises PlanError: there is none, or it has others than int32."""
        where = f"stage {stage.name!r}: {key}"
        if name not in self.arrays:
            raise PlanError(f"{where}: no array {name!r} among {', '.join(sorted(self.arrays))}")
        array = self.arrays[name]
        if array.dtype.kind not in "iu":
            raise PlanError(f"{where}: array {name!r} is {array.dtype}: want integers")
        if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
            raise PlanError(f"{where}: array {name!r} has values outside int32")
        return array


def read_plan(path: Path) -> InferencePlan:
    """The plan in a TOML file, with its arrays. Raises PlanError."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # also bad UTF-8, a number too long
        raise PlanError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    try:
        spec = convert(document, PlanSpec)
    except DocumentError as error:
        raise PlanError(f"{path}: {error}") from None
    arrays_path = path.parent / (spec.arrays or path.with_suffix(".npz").name)
    try:
        return checked(InferencePlan(spec, read_arrays(arrays_path)))
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None


def read_arrays(path: Path) -> dict[str, Array]:
    """Of an .npz. Raises PlanError."""
    try:
        with np.load(path, allow_pickle=False) as found:
            return dict(found)
    except (OSError, ValueError, EOFError) as error:
        raise PlanError(f"arrays {path}: {getattr(error, 'strerror', None) or error}") from None


def checked(plan: InferencePlan) -> InferencePlan:
    """The same, if names and numbers can be; shapes.py looks at arrays. Raises PlanError."""
    spec = plan.spec
    for what, name in [("name", spec.name), *(("nodes", name) for name in spec.nodes)]:
        if not _NAME.fullmatch(name):
            raise PlanError(f"{what}: {name!r}: want letters, digits, '_', '.' and '-', at most 40")
    if not 1 <= len(spec.nodes) <= MOST_NODES or len(set(spec.nodes)) < len(spec.nodes):
        raise PlanError(f"nodes: want 1 to {MOST_NODES} different names, got {len(spec.nodes)}")
    if spec.entry and spec.entry not in spec.nodes:
        raise PlanError(f"entry: {spec.entry!r} is none of {', '.join(spec.nodes)}")
    for key, least, most in (
        ("block", 1, 65536),
        ("window", 64, 4096),
        ("packet_values", 1, 16000),
    ):
        value = getattr(spec, key)
        if not least <= value <= most:
            raise PlanError(f"{key}: {value}: want {least} to {most}")
    if spec.window % 64:
        raise PlanError(f"window: {spec.window}: want a multiple of 64")
    if not spec.stage:
        raise PlanError("stage: want at least one")
    names = [stage.name for stage in spec.stage]
    for stage in spec.stage:
        _check_stage(stage, spec, names)
    _check_input(spec.input)
    return plan


def _check_input(given: InputSpec) -> None:
    if not 1 <= given.width <= 1 << 20:
        raise PlanError(f"input.width: {given.width}: want 1 to 1048576")
    if not -(2**31) <= given.low <= given.high < 2**31:
        raise PlanError(f"input: low {given.low}, high {given.high}: want a range of int32")
    if not (given.scale > 0 and np.isfinite(given.scale)):
        raise PlanError(f"input.scale: {given.scale}: want a number above 0")


def _check_stage(stage: StageSpec, spec: PlanSpec, names: list[str]) -> None:
    if not _NAME.fullmatch(stage.name) or names.count(stage.name) > 1:
        raise PlanError(f"stage {stage.name!r}: want a name of its own")
    where = f"stage {stage.name!r}"
    for node in stage.nodes:
        if node not in spec.nodes:
            raise PlanError(f"{where}: node {node!r} is none of {', '.join(spec.nodes)}")
    if len(set(stage.nodes)) < len(stage.nodes):
        raise PlanError(f"{where}: a node is named twice")
    if not 0 <= stage.shift < 32:
        raise PlanError(f"{where}: shift {stage.shift}: want 0 to 31")
    low, high = stage.clip or (-(2**31), 2**31 - 1)
    if not -(2**31) <= low <= high < 2**31:
        raise PlanError(f"{where}: clip {low}, {high}: want a range of int32")
    splits = _SPLITS.get(stage.kernel, ("",))
    if stage.split not in splits:
        wanted = " or ".join(repr(split) for split in splits)
        raise PlanError(f"{where}: split {stage.split!r}: {stage.kernel} takes {wanted}")
    if stage.kernel in ("neighbours", "frontier") and not 1 <= stage.fanout <= 4096:
        raise PlanError(f"{where}: fanout {stage.fanout}: want 1 to 4096")


_SPLITS: dict[str, tuple[str, ...]] = {
    "linear": ("", "rows", "columns"),
    "embed": ("", "owners"),
    "neighbours": ("", "owners"),
}
