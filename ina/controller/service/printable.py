"""What callers say, fit for terminals: others read it in answers, events and logs."""

from __future__ import annotations


def printable(text: str, most_chars: int) -> str:
    """One line of at most so many characters, ``?`` for what is none that can be shown."""
    return "".join(char if char.isprintable() else "?" for char in text[:most_chars])
