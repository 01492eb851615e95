"""The root of every error that ina raises on purpose. Each message is one line: what and where."""

from __future__ import annotations


class InaError(Exception):
    """Base of all errors of ina; the command line prints it as one line and exits with 2."""

    detail: str = ""
    """Lines of a tool that refused, as it wrote them; the command line prints them below."""


class InvalidInputError(InaError, ValueError):
    """The caller's input is wrong: an argument, a file, a configuration key, a packet."""


class MissingToolError(InaError):
    """Something this machine lacks (a compiler, a package); the message says how to get it."""


class UnavailableError(InaError):
    """A port is in use, a peer does not answer, a resource is used up."""


class DeadlineError(InaError, TimeoutError):
    """A deadline passed; the message says what was waited for and who was missing."""
