"""Mutants are found: rules of effects that forget something, passes that do not ask for them."""

from __future__ import annotations

from functools import cache

import pytest

from ina.switch.passes.effects import effects
from tests.switch.foreign_hashes import HASHED
from tests.switch.foreign_like import FOR_MUTANTS, LIKE
from tests.switch.foreign_programs import CASES
from tests.switch.mutants import PASS_MUTANTS, Mutant, finds, rule_mutants, text_of
from tests.switch.passes.told_effects import EXPECTED, PROGRAM, is_as

RULE_MUTANTS = rule_mutants([(type(node), effects(PROGRAM, node)) for node, _, _ in EXPECTED])
ALL = CASES | LIKE | FOR_MUTANTS | HASHED

OFTEN = {
    "early without effects_before": "A",
    "main_path without effects": "E",
    "main_path without effects_of_keys": "O",
    "forward without effects": "changed behind the copy",
    "hash_plans without effects_of_copies": "gone before the copies",
    "usual without effects": "B",
    "copies without effects_of_copies": "V",
    "reroll without _is_one_in_each_row": "prefix sums",
}
"""Mutants that every run tries, with the program that finds them."""


@cache
def text(name: str) -> str:
    """The C of a program without mutants."""
    return text_of(ALL[name])


@pytest.mark.parametrize("mutant", RULE_MUTANTS, ids=lambda mutant: mutant.name)
def test_a_rule_that_forgets_something_is_not_what_is_stated(mutant: Mutant) -> None:
    with mutant.patch():
        assert not all(is_as(effects(PROGRAM, node), *said) for node, *said in EXPECTED)


@pytest.mark.parametrize(
    "mutant", [it for it in PASS_MUTANTS if it.name in OFTEN], ids=lambda mutant: mutant.name
)
def test_a_pass_that_does_not_ask_makes_its_program_wrong(mutant: Mutant) -> None:
    name = OFTEN[mutant.name]
    unmutated = text(name)
    with mutant.patch():
        assert finds(ALL[name], unmutated)


@pytest.mark.long
@pytest.mark.parametrize("mutant", [*PASS_MUTANTS, *RULE_MUTANTS], ids=lambda mutant: mutant.name)
def test_what_changes_the_code_of_a_program_makes_one_wrong(mutant: Mutant) -> None:
    """A pass that does not ask, always; a rule, where a program depends on it."""
    changed = []
    for name, case in ALL.items():
        unmutated = text(name)
        with mutant.patch():
            try:
                differs = text_of(case) != unmutated
            except (AssertionError, LookupError):
                return
            if differs:
                changed.append(name)
                if finds(case, unmutated):
                    return
    assert mutant not in PASS_MUTANTS, "no program depends on it"
    assert not changed or mutant.name in ONLY_SLOWER, changed


ONLY_SLOWER = {"Extract writes FIELD"}
"""Rules without which a pass does less than it could."""
