"""What prints a function's body: names, the writer, and where the code stands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

from ina.switch.emit.expressions import Expressions
from ina.switch.emit.layout import Layout
from ina.switch.emit.where import Where
from ina.switch.emit.writer import Writer
from ina.switch.ir.expr import LValue, StackFieldRef
from ina.switch.ir.stmt import Block, Stmt


class Code(ABC):
    """Code of one place. Another place is another object: :meth:`at`."""

    def __init__(self, layout: Layout, out: Writer, where: Where, numbers: Iterator[int]) -> None:
        self.layout = layout
        self.out = out
        self.where = where
        self.numbers = numbers
        """Tell apart the variables of one file that have no name in P4."""
        self.expr = Expressions(layout, where)

    @abstractmethod
    def at(self, where: Where) -> Code:
        """The same for another place."""

    @abstractmethod
    def block(self, block: Block) -> None:
        """All statements, in order."""

    def store(self, target: LValue, code: str, stmt: Stmt) -> None:
        """``target = code``, unless the target is a stack element out of range."""
        line = f"{self.expr.lvalue(target)} = {code};"
        if isinstance(target, StackFieldRef) and target.index is not None:
            line = f"if ({self.expr.in_stack(target.stack, target.index)}) {line}"
        self.out.line(line, stmt.source)
