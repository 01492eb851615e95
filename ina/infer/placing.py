"""Who has what of each stage, and what goes from whom to whom: a program for each node."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ina.extension import infer as native
from ina.infer.errors import PlanError
from ina.infer.plan import InferencePlan, StageSpec
from ina.infer.shapes import Longs, Shape, bias_of, graph_of, shapes_of, table_of
from ina.protocol.peer import Peer

Part = tuple[int, int]  # the first column, and the first that is not in it


@dataclass(frozen=True)
class Layout:
    """Who has which columns of the values behind a stage: by node, all of them or its part."""

    parts: dict[int, Part]
    is_whole: bool  # each has all


@dataclass(frozen=True)
class Placed:
    """A stage with its place."""

    name: str
    spec: StageSpec | None  # None: the input
    before: Shape
    shape: Shape
    needs: dict[int, Part]  # columns, by node
    layout: Layout
    is_summed: bool


def cut(width: int, nodes: Sequence[int], what: str) -> dict[int, Part]:
    """Columns in equal parts, in the order of the nodes. Raises PlanError: too few columns."""
    if width < len(nodes):
        raise PlanError(f"{what}: {width} columns cannot be split among {len(nodes)} nodes")
    edges = [width * i // len(nodes) for i in range(len(nodes) + 1)]
    return {node: (edges[i], edges[i + 1]) for i, node in enumerate(nodes)}


def place(plan: InferencePlan) -> list[Placed]:
    """The input and the stages. Raises PlanError."""
    shapes = shapes_of(plan)
    whole = (0, shapes[0].width)
    entry = {plan.entry: whole}
    first = Placed("input", None, shapes[0], shapes[0], entry, Layout(entry, True), False)
    placed = [first]
    for spec, shape in zip(plan.spec.stage, shapes[1:], strict=True):
        placed.append(_place(plan, spec, shape, placed))
    return placed


def _place(plan: InferencePlan, spec: StageSpec, shape: Shape, placed: list[Placed]) -> Placed:
    last = placed[-1]
    before, layout = last.shape, last.layout
    nodes = _nodes_of(plan, spec, layout)
    what = f"stage {spec.name!r}"
    all_in, all_out = (0, before.width), (0, shape.width)
    split = spec.split if len(nodes) > 1 else ""
    needs = dict.fromkeys(nodes, all_in)
    made = Layout(dict.fromkeys(nodes, all_out), True)
    if spec.kernel in ("relu", "add") and set(nodes) == set(layout.parts):
        needs, made = layout.parts, layout  # as it lies
    elif split == "rows":
        made = Layout(cut(shape.width, nodes, what), False)
    elif split == "columns":
        as_it_lies = not layout.is_whole and set(layout.parts) == set(nodes)
        needs = layout.parts if as_it_lies else cut(before.width, nodes, what)
    if spec.kernel == "add":
        other = next(one for one in placed if one.name == spec.of)
        if other.layout.parts != made.parts:
            raise PlanError(
                f"{what}: stage {spec.of!r} has its values at other nodes, or other columns there"
            )
    return Placed(spec.name, spec, before, shape, needs, made, split in ("columns", "owners"))


def _nodes_of(plan: InferencePlan, spec: StageSpec, layout: Layout) -> list[int]:
    if spec.nodes:
        return [plan.spec.nodes.index(name) for name in spec.nodes]
    if spec.split:
        return list(range(len(plan.spec.nodes)))
    return list(layout.parts)


def summed(placed: Sequence[Placed]) -> list[int]:
    """Numbers of stages whose parts a switch sums."""
    return [k for k, one in enumerate(placed) if one.is_summed]


def _sources(layout: Layout, node: int, index: int, need: Part) -> list[tuple[int, Part]]:
    """From whom a node gets the columns that it needs; itself where it can."""
    if layout.is_whole:
        holders = list(layout.parts)
        return [(node if node in layout.parts else holders[index % len(holders)], need)]
    found = []
    for holder, (low, high) in layout.parts.items():
        low, high = max(low, need[0]), min(high, need[1])
        if low < high:
            found.append((holder, (low, high)))
    return found


def ways(placed: Sequence[Placed], k: int) -> list[tuple[int, int, Part]]:
    """What goes to stage `k`: from which node, to which, and which columns. Own ones, too."""
    return [
        (source, node, part)
        for index, (node, need) in enumerate(placed[k].needs.items())
        for source, part in _sources(placed[k - 1].layout, node, index, need)
    ]


@dataclass(frozen=True)
class Surroundings:
    """Where nodes are, and the secret that they share."""

    key: int
    peers: tuple[Peer, ...]


def program_of(
    plan: InferencePlan, placed: Sequence[Placed], node: int, around: Surroundings
) -> native.Program:
    """What the node runs."""
    spec = plan.spec
    return native.Program(
        key=around.key,
        plan=plan.digest,
        node=node,
        entry=plan.entry,
        members=sum(1 << member for member in {node for one in placed for node in one.needs}),
        ring=spec.window,
        packet_values=spec.packet_values,
        low=spec.input.low,
        high=spec.input.high,
        nodes=[native_place(peer) for peer in around.peers],
        stages=[_stage_of(plan, placed, k, node) for k in range(len(placed))],
    )


def native_place(peer: Peer) -> tuple[int, int]:
    """As the core has it."""
    return int(peer.address), peer.udp_port


def _stage_of(plan: InferencePlan, placed: Sequence[Placed], k: int, node: int) -> native.Stage:
    one = placed[k]
    if node not in one.needs:
        return native.Stage(kernel=_KERNELS[one.spec.kernel if one.spec else "input"])
    stage = native.Stage(
        kernel=_KERNELS[one.spec.kernel if one.spec else "input"],
        is_mine=True,
        is_summed=one.is_summed,
        rows_in=plan.spec.block * one.before.rows,
        rows_out=plan.spec.block * one.shape.rows,
        columns_in=native.Columns(*one.needs[node]),
        columns_out=native.Columns(*one.layout.parts[node]),
    )
    if k > 0:
        comes = [(source, part) for source, to, part in ways(placed, k) if to == node]
        stage.inbound = [_edge(source, part) for source, part in comes if source != node]
        own = [part for source, part in comes if source == node]
        stage.own = native.Columns(*(own[0] if own else (0, 0)))
    if k + 1 < len(placed):
        goes = [(to, part) for source, to, part in ways(placed, k + 1) if source == node]
        stage.outbound = [_edge(to, part) for to, part in goes if to != node]
    else:
        holders = list(one.layout.parts)
        stage.is_last = True
        stage.turns = len(holders) if one.layout.is_whole else 1
        stage.turn = holders.index(node) if one.layout.is_whole else 0
    if one.spec is not None:
        _fill(plan, placed, one.spec, one, node, stage)
    return stage


def _edge(node: int, part: Part) -> native.Edge:
    return native.Edge(node, native.Columns(*part))


def _fill(
    plan: InferencePlan, placed: Sequence[Placed], spec: StageSpec, one: Placed, node: int,
    stage: native.Stage,
) -> None:  # fmt: skip
    """What the kernel needs besides values."""
    if spec.kernel == "linear":
        (low, high), (top, end) = one.needs[node], one.layout.parts[node]
        weights = plan.array(spec, "weights").astype(np.int32)[top:end, low:high]
        own = np.ascontiguousarray(weights.T)
        bias = np.ascontiguousarray(bias_of(plan, spec, one.shape.width)[top:end].astype(np.int32))
        stage.set_weights(own.ctypes.data, own.size, bias.ctypes.data, bias.size)
        stage.shift = spec.shift
        stage.low, stage.high = spec.clip or (-(2**31), 2**31 - 1)
    if spec.kernel == "add":
        stage.adds = [other.name for other in placed].index(spec.of)
    if spec.kernel in ("embed", "neighbours"):
        _fill_table(plan, spec, one, node, stage)
    if spec.kernel in ("neighbours", "frontier"):
        first, to = graph_of(plan, spec)
        starts, goals = first.astype(np.uint64), to.astype(np.uint32)
        stage.set_graph(
            native.Graph(starts.ctypes.data, starts.size - 1, goals.ctypes.data, goals.size)
        )
        stage.fanout, stage.seed, stage.with_self = spec.fanout, spec.seed, spec.with_self


def _fill_table(
    plan: InferencePlan, spec: StageSpec, one: Placed, node: int, stage: native.Stage
) -> None:
    table = table_of(plan, spec)
    owners = owners_of(len(table), list(one.needs)) if one.is_summed else np.full(len(table), node)
    places = np.full(len(table), -1, np.int32)
    places[owners == node] = np.arange((owners == node).sum())
    rows = np.ascontiguousarray(table[owners == node].astype(np.int32))
    stage.table_width = table.shape[1]
    stage.set_table(rows.ctypes.data, rows.size, places.ctypes.data, places.size)


def owners_of(rows: int, nodes: Sequence[int]) -> Longs:
    """Which node has each row of a table: by a mixed number, so that neighbours are spread."""
    mixed = np.arange(rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    turns = ((mixed >> np.uint64(40)) % np.uint64(len(nodes))).astype(np.int64)
    owners: Longs = np.array(nodes, np.int64)[turns]
    return owners


_KERNELS = {
    "input": native.Kernel.INPUT,
    "linear": native.Kernel.LINEAR,
    "relu": native.Kernel.RELU,
    "add": native.Kernel.ADD,
    "embed": native.Kernel.EMBED,
    "neighbours": native.Kernel.NEIGHBOURS,
    "frontier": native.Kernel.FRONTIER,
    "fold": native.Kernel.FOLD,
    "argmax": native.Kernel.ARGMAX,
}
