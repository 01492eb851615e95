"""Names of P4 to identifiers of C."""

from __future__ import annotations

import re

_KEYWORDS = frozenset(
    [
        "auto",
        "break",
        "case",
        "char",
        "const",
        "continue",
        "default",
        "do",
        "double",
        "else",
        "enum",
        "extern",
        "float",
        "for",
        "goto",
        "if",
        "inline",
        "int",
        "long",
        "register",
        "restrict",
        "return",
        "short",
        "signed",
        "sizeof",
        "static",
        "struct",
        "switch",
        "typedef",
        "union",
        "unsigned",
        "void",
        "volatile",
        "while",
        "bool",
        "true",
        "false",
        "type",
        "main",
        "errno",  # and what GCC defines
        "i386",
        "linux",
        "unix",
    ]
)
_RESERVED = frozenset(
    {
        "memory",
        "most_replicas",
        "data",
        "length",
        "offset",
        "truncate",
        "told_length",
        "arrays",
        "bits",
        "mutex",
        "groups",
        "gathered",
        "unused",
    }
)
_SUFFIXES = (
    "_valid",
    "_wire",
    "_next",
    "_slots",
    "_index",
    "_array",
    "_slot",
    "_kept_in",
)  # made here from other names
_SPACES = {"table": "state", "counter": "state", "register": "state"}
"""Kinds whose identifiers share a C name space: P4 lets a table and a counter have one name."""


class Names:
    """Turns P4 names into distinct C identifiers."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._given: dict[tuple[str, str], str] = {}

    def get(self, kind: str, name: str) -> str:
        """The identifier of ``name``; the same one each time."""
        if (kind, name) not in self._given:
            base = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_") or "x"
            taken_by_c = base in _KEYWORDS or base.upper() == base  # as C's macros are written
            if base[0].isdigit() or taken_by_c or base.startswith("ina_"):
                base = f"p4_{base}"
            space = _SPACES.get(kind, kind)
            if space in ("header", "state") and (base in _RESERVED or base.endswith(_SUFFIXES)):
                base += "_"
            unique, n = base, 1
            while f"{space}:{unique}" in self._taken:
                n += 1
                unique = f"{base}_{n}"
            self._taken.add(f"{space}:{unique}")
            self._given[kind, name] = unique
        return self._given[kind, name]
