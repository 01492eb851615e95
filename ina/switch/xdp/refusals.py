"""What the kernel's verifier says of a program, told by the P4 that it is about.

Generated C has places of P4 in comments at its lines' ends; the verifier's log has the lines of C
that it went through (``; text @ program.c:12``; kernels before 6.10 only the text), and the last of
them is where it gave up.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_PLACE = re.compile(r" // (?P<place>\S+:\d+|parser state '[^']*')$")
_LOGGED = re.compile(r";\s?(?P<text>.*?)(?:\s*@ (?P<file>\S+):(?P<line>\d+))?")
_GENERATED = "program.c"
_WORDS = (
    (
        r"BPF program is too large|too many instructions",
        "a program with so many ways through it that the kernel's verifier gives up",
    ),
    (
        r"sequence of \d+ jumps is too complex",
        "a program with so many branches that the kernel's verifier gives up",
    ),
    (
        r"combined stack size|stack frames|stack depth|stack limit",
        "more than 512 bytes of values at a time in the kernel",
    ),
    (r"built-in function", "a product or quotient of more than 64 bits"),
    (
        r"back-edge|infinite loop detected|loop is not bounded",
        "a loop whose end the kernel's verifier does not see",
    ),
    (
        r"while holding a lock|holding a lock",
        "what the kernel does not do between two uses of a register",
    ),
    (
        r"invalid (mem |indirect )?access|unbounded|out of bounds|outside of the",
        "a value of which the kernel's verifier does not see that it stays in its bounds",
    ),
)


@dataclass(frozen=True)
class Refusal:
    """In words of P4."""

    construct: str
    source: str
    """The place of P4; empty: the log leads to none."""


def refusal(log: str, generated: str) -> Refusal:
    """``log``: the verifier's, of level 1 or more. ``generated``: the C that it looked at."""
    lines = [line.strip() for line in log.splitlines()]
    said = [it for it in lines if it and not it.startswith(("processed ", "verification time"))]
    error = said[-1] if said else "no message"
    words = next((plain for pattern, plain in _WORDS if re.search(pattern, error)), "")
    construct = f"{words} ({error})" if words else f"what the kernel's verifier refuses: {error}"
    places = _places(generated)
    numbers = _last_first(lines, generated)
    found = (places[number - 1] for number in numbers if 0 < number <= len(places))
    return Refusal(construct, next((place for place in found if place), ""))


def _places(generated: str) -> list[str]:
    """By line of C: the nearest place at or before it in the same function."""
    found, place = [], ""
    for line in generated.splitlines():
        said = _PLACE.search(line)
        if said:
            place = said["place"]
        elif line and not line[0].isspace():  # a function begins or ends
            place = ""
        found.append(place)
    return found


def _last_first(lines: list[str], generated: str) -> Iterator[int]:
    """Lines of the generated C, by their numbers from 1, as the log has them."""
    code = [line.strip() for line in generated.splitlines()]
    counts = Counter(code)
    numbers = {text: number for number, text in enumerate(code, 1) if counts[text] == 1}
    for line in reversed(lines):
        logged = _LOGGED.fullmatch(line)
        if logged is None:
            continue
        if logged["file"] is None:
            yield numbers.get(logged["text"].strip(), 0)
        elif logged["file"].endswith(_GENERATED):
            yield int(logged["line"])
