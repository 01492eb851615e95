"""The Python of the checkout, parsed once in each process, and what its files import."""

from __future__ import annotations

import ast
import functools
from pathlib import Path

from tests.lines import ROOT


@functools.cache
def parsed(path: Path) -> ast.Module:
    """The file as it was when somebody first asked."""
    return ast.parse(path.read_text(), str(path))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of the file, also inside functions."""
    return tuple(ast.walk(parsed(path)))


def imports(path: Path, package: list[str]) -> set[str]:
    """Dotted names that the file, a module in ``package``, imports; relative ones resolved."""
    names: set[str] = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            origin = ".".join([*base, *([node.module] if node.module else [])])
            names.update(f"{origin}.{alias.name}" for alias in node.names)
    return names


def imports_of_tests(path: Path) -> set[str]:
    """Of a file below ``tests``."""
    return imports(path, list(path.relative_to(ROOT).parts[:-1]))
