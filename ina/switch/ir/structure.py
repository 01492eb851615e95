"""The pipeline graph of BMv2 (nodes with next pointers) back to structured statements.

p4c lowers a control to a directed acyclic graph whose branches meet again. The place where all ways
out of a node meet is its immediate post-dominator: each branch is built up to there, once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ina.switch.errors import InvalidProgramError, UnsupportedProgramError
from ina.switch.ir.expr import Expr
from ina.switch.ir.source import UNKNOWN, Source
from ina.switch.ir.stmt import Apply, Block, If, Stmt

MAX_COPIES = 4
"""A graph that p4c could not have made would copy nodes; beyond this factor it is refused."""


@dataclass(frozen=True)
class FlowNode:
    """A conditional (``condition``), a table (``table``), or plain statements (``body``)."""

    name: str
    condition: Expr | None = None
    table: str = ""
    body: Block = ()
    next: Mapping[str | int, str | None] = field(default_factory=dict)
    """Successors by "true"/"false", "hit"/"miss", action index, or "next"."""
    source: Source = UNKNOWN


def build_pipeline(nodes: Mapping[str, FlowNode], start: str | None) -> Block:
    """The statements of a pipeline that begins at node ``start``."""
    return _Builder(nodes).block(start, None)


class _Builder:
    def __init__(self, nodes: Mapping[str, FlowNode]) -> None:
        self._nodes = nodes
        self._budget = MAX_COPIES * len(nodes) + 16
        self._join: dict[str, str | None] = {}
        self._depth: dict[str | None, int] = {None: 0}
        for name in self._topological():
            self._find_join(name)

    def _topological(self) -> list[str]:
        """Successors before predecessors; a cycle or a dangling edge is refused."""
        order: list[str] = []
        state: dict[str, int] = {}
        for root in self._nodes:
            stack = [(root, False)]
            while stack:
                name, done = stack.pop()
                if done:
                    state[name] = 2
                    order.append(name)
                    continue
                if state.get(name) == 2:
                    continue
                if state.get(name) == 1:
                    raise UnsupportedProgramError(
                        "a loop in a pipeline", str(self._nodes[name].source)
                    )
                state[name] = 1
                stack.append((name, True))
                for successor in self._nodes[name].next.values():
                    if successor is None or state.get(successor) == 2:
                        continue
                    if successor not in self._nodes:
                        raise InvalidProgramError(f"BMv2 JSON: no pipeline node {successor!r}")
                    if state.get(successor) == 1 and (successor, True) in stack:
                        raise UnsupportedProgramError("a loop in a pipeline")
                    stack.append((successor, False))
        return order

    def _find_join(self, name: str) -> None:
        successors = list(dict.fromkeys(self._nodes[name].next.values())) or [None]
        join = successors[0]
        for other in successors[1:]:
            join = self._common(join, other)
        self._join[name] = join
        self._depth[name] = self._depth[join] + 1

    def _common(self, a: str | None, b: str | None) -> str | None:
        while a != b:
            if self._depth[a] < self._depth[b]:
                a, b = b, a
            assert a is not None  # the deeper of two different nodes is not the exit
            a = self._join[a]
        return a

    def block(self, start: str | None, end: str | None) -> Block:
        block: list[Stmt] = []
        name = start
        while name is not None and name != end:
            self._budget -= 1
            if self._budget < 0:
                raise UnsupportedProgramError("control flow that is not structured")
            node, join = self._nodes[name], self._join[name]
            ways = {key: self.block(target, join) for key, target in node.next.items()}
            if node.condition is not None:
                then, otherwise = ways.get("true", ()), ways.get("false", ())
                block.append(If(node.condition, then, otherwise, node.source))
            elif node.table:
                actions = tuple((k, way) for k, way in ways.items() if isinstance(k, int) and way)
                block.append(
                    Apply(
                        node.table, ways.get("hit", ()), ways.get("miss", ()), actions, node.source
                    )
                )
            else:
                block.extend(node.body)
            name = join
        return tuple(block)
