"""Errors of compiling and finding P4 programs."""

from __future__ import annotations

from ina.errors import InvalidInputError, MissingToolError


class P4cMissingError(MissingToolError):
    """No p4c-bm2-ss on this machine; the message says how to get it."""


class P4CompileError(InvalidInputError):
    """p4c refused the program; the message is p4c's first error, with file and line.

    ``detail``: all that p4c said, with the lines of the program that it shows.
    """

    def __init__(self, message: str, detail: str = "") -> None:
        super().__init__(message)
        self.detail = detail


class P4cDefectError(P4CompileError):
    """The compiler is one with a known bug that makes the program useless."""


class P4InfoError(InvalidInputError):
    """A file is not the P4Info that it should be."""


class UnknownBuildError(InvalidInputError):
    """There is no checked-in build with that many values a packet."""
