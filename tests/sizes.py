"""What is too large to be one thing: functions, classes in two files, words that name two classes.

``python -m tests.sizes`` takes out of the exceptions what no longer is one.
"""

from __future__ import annotations

import ast
import bisect
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lines import ROOT, sources

EXCEPTIONS = Path(__file__).parent / "size_exceptions.json"
"""By rule, names of what was there when the rule was made. It may only lose some."""
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 8
GLOSSARY = ROOT / "docs" / "glossary.md"

_IGNORED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
    r"""|^[ \t]*\#(?:[^\n]*\\\n)*[^\n]*""",
    re.DOTALL | re.MULTILINE,
)
_CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
_DIGITS = re.compile(r"(?<=\d)'(?=\d)")
_SCOPE = re.compile(r"\b(?:namespace|class|struct|union|enum|extern)\b[^()]*$")
_CALLED = re.compile(
    r"((?:\b\w+(?:<[^<>;(){}]*>)?::)*(?:\boperator\s*(?:\(\)|[^\s\w(]+)|~?\b\w+))\s*\("
)
_STOP, _BRACKET = re.compile("[;{}]"), re.compile("[(){}]")
_NO_NAMES = {"if", "for", "while", "switch", "alignas", "noexcept", "decltype", "__attribute__"}


@dataclass(frozen=True)
class Function:
    """``name``: with its classes, as ``Session.join`` or ``Transport::run``."""

    path: str
    name: str
    lines: int
    parameters: int  # without self

    @property
    def key(self) -> str:
        """A method within its package, so that its file may be moved there."""
        is_method = "." in self.name or "::" in self.name
        return f"{package_of(self.path) if is_method else self.path}: {self.name}"


def package_of(path: str) -> str:
    """``ina/host`` of ``ina/host/session.py``; the first folder of what is not in ina or native."""
    parts = path.split("/")
    if parts[0] in ("ina", "native") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0] if len(parts) > 1 else "."


def functions_of(path: str, text: str) -> Iterator[Function]:
    """Of Python or C++, by the name's end; of other sources none."""
    if path.endswith(".py"):
        yield from _python_functions(path, ast.parse(text, path), "")
    elif path.endswith((".cpp", ".hpp")):
        yield from _native_functions(path, text)


def _python_functions(path: str, node: ast.AST, prefix: str) -> Iterator[Function]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # no function stands there but a lambda
        inner = prefix
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = f"{prefix}{child.name}."
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (child.end_lineno or child.lineno) - child.lineno + 1
            yield Function(path, inner[:-1], lines, _python_parameters(child.args))
        yield from _python_functions(path, child, inner)


def _python_parameters(of: ast.arguments) -> int:
    named = [one.arg for one in (*of.posonlyargs, *of.args, *of.kwonlyargs)]
    is_method = named[:1] in (["self"], ["cls"])
    return len(named) - is_method + (of.vararg is not None) + (of.kwarg is not None)


def _native_functions(path: str, text: str) -> Iterator[Function]:
    """Bodies that stand in a namespace or a class; a lambda is its function's."""
    code = _blanked(text)
    starts = [0, *(match.end() for match in re.finditer("\n", code))]
    at = begin = 0
    while (at := _next(code, at)) < len(code):
        if code[at] in ";}" or _SCOPE.search(code, begin, at):
            at = begin = at + 1
            continue
        end = _closing(code, at)
        head = code[begin:at]
        is_value = head.count("(") > head.count(")")  # a parameter's
        if is_value or re.search(r"\)\s*:.*?\w\s*$", head, re.DOTALL):  # or a member's
            at = end
            continue
        if (named := _name(head)) is None:
            at = begin = end  # a variable's value
            continue
        name, inside = named
        first = bisect.bisect(starts, begin + len(head) - len(head.lstrip()))
        last = bisect.bisect(starts, end - 1)
        yield Function(path, name, last - first + 1, _native_parameters(inside))
        at = begin = end


def _blanked(text: str) -> str:
    """Without comments, texts and directives, with the same lines."""
    return _IGNORED.sub(lambda match: "\n" * match[0].count("\n"), _DIGITS.sub("", text))


def _next(code: str, at: int) -> int:
    match = _STOP.search(code, at)
    return len(code) if match is None else match.start()


def _closing(code: str, at: int) -> int:
    """Behind the bracket that closes the one at ``at``."""
    depth = 0
    for match in _BRACKET.finditer(code, at):
        depth += 1 if match[0] in "({" else -1
        if depth == 0:
            return match.end()
    return len(code)


def _name(head: str) -> tuple[str, str] | None:
    """A function's name, and what stands between its parentheses."""
    for match in _CALLED.finditer(head):
        name = match[1]
        if name not in _NO_NAMES and "=" not in head[: match.start()].replace("==", ""):
            return name, head[match.end() : _closing(head, match.end() - 1) - 1]
    return None


def _native_parameters(inside: str) -> int:
    depth, found = 0, int(inside.strip() not in ("", "void"))
    for letter in inside:
        depth += (letter in "(<{[") - (letter in ")>}]")
        found += letter == "," and depth == 0
    return found


def texts() -> dict[str, str]:
    """Of what is written by hand."""
    return {it.relative_to(ROOT).as_posix(): it.read_text() for it in sources()}


def in_two_files(functions: Iterable[Function]) -> set[str]:
    """C++ classes whose functions are defined in two .cpp; in Python a class is one block."""
    files: dict[str, set[str]] = defaultdict(set)
    for one in functions:
        if one.path.endswith(".cpp") and "::" in one.name:
            owner = re.sub("<.*?>", "", one.name).rpartition("::")[0]
            files[f"{package_of(one.path)}: {owner}"].add(one.path)
    return {key for key, paths in files.items() if len(paths) > 1}


def glossary_words(page: str) -> set[str]:
    """As classes would be named: ``host node`` is HostNode."""
    words = re.findall(r"^\| ([a-z][a-z -]*) \|", page, re.MULTILINE)
    return {"".join(part.title() for part in re.split("[ -]", word)) for word in words} - {"Word"}


def words_twice(of: Mapping[str, str], words: set[str]) -> set[str]:
    """``WORD: PACKAGE`` for each of the packages of ina that have a class of that name."""
    packages: dict[str, set[str]] = defaultdict(set)
    for path, text in of.items():
        if path.startswith("ina/") and path.endswith(".py"):
            for name in set(_CLASS.findall(text)) & words:
                packages[name].add(package_of(path))
    return {
        f"{word}: {package}"
        for word, owners in packages.items()
        for package in owners
        if len(owners) > 1
    }


def found() -> dict[str, set[str]]:
    """By rule, all that break it."""
    of = texts()
    all_of = [one for path, text in of.items() for one in functions_of(path, text)]
    return {
        "class in two files": in_two_files(all_of),
        "more than 60 lines": {one.key for one in all_of if one.lines > MAX_FUNCTION_LINES},
        "more than 8 parameters": {one.key for one in all_of if one.parameters > MAX_PARAMETERS},
        "word of the glossary": words_twice(of, glossary_words(GLOSSARY.read_text())),
    }


def exceptions() -> dict[str, set[str]]:
    """By rule, those that were there."""
    return {rule: set(names) for rule, names in json.loads(EXCEPTIONS.read_text()).items()}


def write(kept: Mapping[str, set[str]]) -> None:
    """A name a line, so that two changes meet seldom."""
    ordered = {rule: sorted(names) for rule, names in kept.items()}
    EXCEPTIONS.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    now = found()
    write({rule: names & now[rule] for rule, names in exceptions().items()})
