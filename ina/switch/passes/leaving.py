"""Under which condition a packet that had registers for itself can still leave.

Behind its critical section a packet may not look at them any more: another one may have begun the
next round there. So what it takes along of them it takes inside, and most packets (contributions
to a sum that is not complete) take nothing, since they are dropped. Whether one may leave is asked
where the section ends, by the weakest precondition of "it leaves" (E. W. Dijkstra, 1975), with
``true`` for whatever is not known there: so it is never too strong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ina.switch.ir.data import STANDARD
from ina.switch.ir.expr import Binary, BoolConst, Const, Expr, FieldRef, Unary
from ina.switch.ir.program import Program
from ina.switch.ir.stmt import Apply, Assign, Block, Exit, If, Stmt
from ina.switch.ir.walk import walk
from ina.switch.passes.effect_places import Effects
from ina.switch.passes.effects import effects, field_ref
from ina.switch.passes.sections import Section
from ina.switch.passes.specialise import Facts, known

_DROP_PORT = 511
_MOST_NODES = 64
"""Of a condition; a longer one is not asked."""
_TRUE, _FALSE = BoolConst(True), BoolConst(False)


def with_leaving(program: Program, block: Block) -> Block:
    """Ingress, or what is done in its place, whose sections say when a packet can leave."""
    return _Leaving(program).before(block, _leaves(program))[0]


def _leaves(program: Program) -> Expr:
    """At the end of ingress."""
    terms = []
    fields = program.headers[STANDARD].type.by_name if STANDARD in program.headers else {}
    for name, dropped in (("mcast_grp", 0), ("egress_spec", _DROP_PORT)):
        if name in fields:
            terms.append(Binary("!=", field_ref(program, STANDARD, name), Const(dropped)))
    return _any(*terms) if len(terms) == 2 else _TRUE


class _Leaving:
    def __init__(self, program: Program) -> None:
        self._program = program
        self._at_end = _leaves(program)

    def before(self, block: Block, after: Expr) -> tuple[Block, Expr]:
        """The block with its sections told, and when a packet leaves that comes to it; ``after``:
        one that has passed it."""
        done: list[Any] = []
        for stmt in reversed(block):
            told, after = self._stmt(stmt, after)
            done.append(told)
        return tuple(reversed(done)), after

    def _stmt(self, stmt: Stmt | Section, after: Expr) -> tuple[Any, Expr]:
        if isinstance(stmt, Section):
            body, before = self.before(stmt.body, after)
            return replace(stmt, body=body, leaves=after), before
        if isinstance(stmt, Exit):
            return stmt, self._at_end
        if isinstance(stmt, If):
            then, if_so = self.before(stmt.then, after)
            otherwise, if_not = self.before(stmt.otherwise, after)
            told = replace(stmt, then=then, otherwise=otherwise)
            return told, _short(_choice(stmt.condition, if_so, if_not))
        if isinstance(stmt, Assign) and isinstance(stmt.target, FieldRef):
            return stmt, self._assigned(stmt, after)
        if isinstance(stmt, Apply):
            return self._applied(stmt, after)
        touched = effects(self._program, stmt)
        unknown = touched.leaves or self._disturbed(touched, after)
        return stmt, _TRUE if unknown else after

    def _applied(self, stmt: Apply, after: Expr) -> tuple[Stmt, Expr]:
        """What actions leave is not known, nor whether there is an entry."""
        on_hit, if_hit = self.before(stmt.on_hit, after)
        on_miss, if_missed = self.before(stmt.on_miss, after)
        by_action = tuple(
            (action, *self.before(block, _any(if_hit, if_missed)))
            for action, block in stmt.on_action
        )
        on_action = tuple((action, block) for action, block, _ in by_action)
        alone = replace(stmt, on_hit=(), on_miss=(), on_action=())
        same = {if_hit, if_missed, *(before for _, _, before in by_action)} == {after}
        touched = effects(self._program, alone)
        unknown = not same or touched.leaves or self._disturbed(touched, after)
        told = replace(stmt, on_hit=on_hit, on_miss=on_miss, on_action=on_action)
        return told, _TRUE if unknown else after

    def _assigned(self, stmt: Assign, after: Expr) -> Expr:
        if not self._disturbed(effects(self._program, stmt), after):
            return after
        target = stmt.target
        if isinstance(stmt.value, Const) and isinstance(target, FieldRef):
            cut = stmt.value.value & (1 << target.width_bits) - 1
            known_after = known(after, Facts({}, {(target.header, target.field): cut}))
            if not self._disturbed(effects(self._program, stmt), known_after):
                return known_after
        return _TRUE

    def _disturbed(self, touched: Effects, condition: Expr) -> bool:
        return touched.disturb(effects(self._program, condition))


def _choice(condition: Expr, then: Expr, otherwise: Expr) -> Expr:
    if then == otherwise:
        return then
    return _any(_all(condition, then), _all(_not(condition), otherwise))


def _short(expr: Expr) -> Expr:
    return expr if sum(1 for _ in walk(expr)) <= _MOST_NODES else _TRUE


def _not(expr: Expr) -> Expr:
    return BoolConst(not expr.value) if isinstance(expr, BoolConst) else Unary("not", expr)


def _all(left: Expr, right: Expr) -> Expr:
    if _FALSE in (left, right):
        return _FALSE
    if left == _TRUE:
        return right
    return left if right == _TRUE else Binary("and", left, right)


def _any(left: Expr, right: Expr) -> Expr:
    if _TRUE in (left, right):
        return _TRUE
    if left == _FALSE:
        return right
    return left if right == _FALSE else Binary("or", left, right)
