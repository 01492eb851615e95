"""Errors of the soft switch: loading a program, compiling it, changing its tables."""

from __future__ import annotations

from ina.errors import InaError, InvalidInputError, MissingToolError, UnavailableError


class InvalidProgramError(InvalidInputError):
    """The BMv2 JSON is not what p4c writes: not JSON, a missing key, an unknown name."""


class UnsupportedProgramError(InvalidInputError):
    """The program uses something that the switch lacks; names construct and P4 line."""

    def __init__(self, construct: str, source: str = "") -> None:
        self.construct = construct
        self.source = source
        where = f" at {source}" if source else ""
        super().__init__(f"this switch does not support {construct}{where}")


class CompilerMissingError(MissingToolError):
    """No C compiler on this machine."""


class CompilationError(InaError):
    """The C compiler refused the generated code: a bug in ina, or a broken compiler."""


class InvalidEntryError(InvalidInputError):
    """A table entry, counter index or name does not fit the program."""


class EntryExistsError(InvalidInputError):
    """The table already holds an entry with this key (and priority)."""


class EntryNotFoundError(InvalidInputError):
    """The table holds no such entry (any more)."""


class TableFullError(UnavailableError):
    """The table holds as many entries as the program gave it room for."""


class UnlistedKindError(InaError):
    """A kind of statement or expression without a rule of what it reads and changes: a bug in ina,
    which would make the passes wrong."""

    def __init__(self, kind: str) -> None:
        super().__init__(
            f"no rule says what a {kind} reads and changes; list it in "
            "ina/switch/passes/effect_rules.py"
        )
