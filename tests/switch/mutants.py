"""Mutants of the effects analysis: a rule that forgets something, a pass that does not ask."""

from __future__ import annotations

import faulthandler
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from unittest import mock

from fuzz.programs.batch import BatchError
from ina.switch.emit_c.emit import emit_c
from ina.switch.ir import load_program
from ina.switch.passes.effect_places import Effects, Kind
from ina.switch.passes.effect_rules import RULES, Told
from ina.switch.passes.plan import make_plan
from tests.switch.foreign_case import Case, leaves
from tests.switch.quick import quick

PASSES = "ina.switch.passes."
CHILD_S = 120
"""Compiling and one packet."""


@dataclass(frozen=True)
class Mutant:
    name: str
    patch: Callable[[], Any]
    """Makes the context manager in which the mutant lives."""


def forgets(kind: type, mode: str, what: Kind | None) -> Mutant:
    """A rule that does not say that its kind reads, writes or surely sets this, or may leave."""
    rule = RULES[kind]

    def mutated(told: Told, node: Any) -> None:
        inner = Told(told.program, told.iterations, told.without, told.arrays_apart)
        rule(inner, node)
        for name in ("reads", "writes", "sets"):
            kept = getattr(inner, name)
            if name == mode:
                kept = {place for place in kept if place.kind is not what}
            getattr(told, name).update(kept)
        told.leaves |= inner.leaves and mode != "leaves"

    name = f"{kind.__name__} {mode}" + (f" {what.name}" if what else "")
    return Mutant(name, lambda: mock.patch.dict(RULES, {kind: mutated}))


def rule_mutants(told: Iterable[tuple[type, Effects]]) -> list[Mutant]:
    """One for each thing that samples of the kinds have been told to do."""
    found: dict[str, Mutant] = {}
    for kind, done in told:
        each = [
            (mode, place.kind)
            for mode in ("reads", "writes", "sets")
            for place in getattr(done, mode).each
        ]
        for mode, what in [*each, *([("leaves", None)] if done.leaves else [])]:
            mutant = forgets(kind, mode, what)
            found[mutant.name] = mutant
    return [found[name] for name in sorted(found)]


def does_not_ask(module: str, name: str, answer: Any) -> Mutant:
    """A pass that takes this for the analysis's answer."""
    target = f"{PASSES}{module}.{name}"
    return Mutant(f"{module} without {name}", lambda: mock.patch(target, return_value=answer))


NOTHING = Effects()
PASS_MUTANTS = [
    *(does_not_ask("early", name, NOTHING) for name in ("effects_before", "effects_of_keys")),
    *(does_not_ask("main_path", n, NOTHING) for n in ("effects", "effects_of_parser")),
    *(does_not_ask("main_path", n, NOTHING) for n in ("effects_of_keys",)),
    does_not_ask("main_path", "verifications", ()),
    does_not_ask("forward", "effects", NOTHING),
    does_not_ask("hash_plans", "effects_of_copies", NOTHING),
    does_not_ask("usual", "effects", NOTHING),
    does_not_ask("copies", "effects_of_copies", NOTHING),
    *(does_not_ask("late_fields", n, NOTHING) for n in ("effects", "effects_of_parser")),
    does_not_ask("late_fields", "_read_too_soon", set()),
    *(
        does_not_ask("entry_fields", name, NOTHING)
        for name in ("effects_before", "effects_outside")
    ),
    does_not_ask("reroll", "_is_set_first", True),
    does_not_ask("reroll", "_is_one_in_each_row", True),
    does_not_ask("reroll", "is_invariant", True),
    does_not_ask("loops", "is_invariant", True),
    does_not_ask("late_arrays", "_elsewhere", NOTHING),
    does_not_ask("late_arrays", "of_iteration", NOTHING),
    *(
        does_not_ask("uses", n, NOTHING)
        for n in ("effects", "effects_of_parser", "effects_of_copies")
    ),
    does_not_ask("unpacking", "pipeline_parts", [()]),
    does_not_ask("unpacking", "effects_of_parser", NOTHING),
]


def text_of(case: Case) -> str:
    """The C of its program."""
    return emit_c(make_plan(load_program(case.program.json())), "mutant")


def finds(case: Case, text: str) -> bool:
    """Whether the case is wrong now, or is not even translated; ``text``: its C without mutants.

    It runs in a process of its own, which it may end.
    """
    try:
        mutated = text_of(case)
    except (AssertionError, LookupError):
        return True
    if mutated == text:
        return False
    child = os.fork()
    if child == 0:
        faulthandler.disable()  # it may crash
        signal.alarm(CHILD_S)
        try:
            with quick([case.program.json()]) as [program]:
                os._exit(0 if leaves(case, program.main) == case.right else 1)
        except BatchError:
            os._exit(1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] != 0
