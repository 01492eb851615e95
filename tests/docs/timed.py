"""Everything in ina's sources that names a time, and every wait that has none: from the text alone.

``tests/docs/deadlines.md`` has to have them all; tests hold it to that.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.lines import ROOT
from tests.sources import nodes, parsed

Value = float | tuple[float, ...]

_UNIT_S = {"s": 1.0, "ms": 1e-3, "ns": 1e-9}
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*?_(?:(S|MS|NS)|(?:TIMEOUT|DEADLINE))")
_FIELD = re.compile(r"[a-z][a-z0-9_]*_(s|ms|ns)")
_NATIVE = re.compile(
    r"(?:constexpr [^=;]*\b(k\w*?)(Ns|Ms)|\b([a-z_]+)_(ns|ms)) = ([0-9][0-9']*)[;,]"
)
_WAITS = {"wait", "join", "get", "result", "acquire", "communicate", "wait_for"}

_VIRTUAL = ("ina/sim/", "native/sim/")
"""In virtual time nobody waits: a network in which nothing happens any more ends by itself."""


def sources(*folders: str) -> Iterator[Path]:
    """What git knows there and a person has written."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "-co", "--exclude-standard", *folders],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for name in filter(None, listed.split("\0")):
        is_made = "_pb2" in name or "/generated/" in name
        if not is_made and not name.startswith(_VIRTUAL) and (ROOT / name).exists():
            yield ROOT / name


@functools.cache
def constants() -> dict[str, Value]:
    """Seconds by ``PATH::NAME``, ``PATH::CLASS.FIELD`` or ``PATH::FUNCTION(PARAMETER)``."""
    found: dict[str, Value] = {}
    for path in sources("ina", "native"):
        where = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py":
            found |= {f"{where}::{name}": value for name, value in of_python(path)}
        elif path.suffix in (".hpp", ".cpp"):
            found |= {f"{where}::{name}": value for name, value in of_native(path)}
    return found


def of_native(path: Path) -> Iterator[tuple[str, Value]]:
    """Of C++: constants and members' first values, but for 0."""
    for match in _NATIVE.finditer(path.read_text()):
        constant, upper, field, lower, digits = match.groups()
        unit_s = _UNIT_S[(upper or lower).lower()]
        if number := int(digits.replace("'", "")):
            yield (f"{constant}{upper}" if constant else f"{field}_{lower}"), number * unit_s


def of_python(path: Path) -> Iterator[tuple[str, Value]]:
    """Of Python: constants, and defaults of fields and parameters, but for 0."""
    inner = nodes(path)
    classes = [node for node in inner if isinstance(node, ast.ClassDef)]
    scopes = [("", parsed(path).body), *((f"{one.name}.", one.body) for one in classes)]
    for prefix, body in scopes:
        for target, value in (pair for node in body for pair in _assigned(node)):
            name, unit = _named(target, fields=bool(prefix))
            number = _seconds(value, unit, path) if name else None
            if number:
                yield prefix + name, number
    for node in inner:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for argument, default in _defaults(node.args):
                name, unit = _named(argument, fields=True)
                number = _seconds(default, unit, path) if name else None
                if number and not isinstance(default, ast.Name):  # a name has a row of its own
                    yield f"{node.name}({name})", number


def _assigned(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.AnnAssign) and node.value and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    if isinstance(node, ast.Assign):
        (target, *_), value = node.targets, node.value
        if isinstance(target, ast.Name):
            yield target.id, value
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, its in zip(target.elts, value.elts, strict=True):
                if isinstance(one, ast.Name):
                    yield one.id, its


def _defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    for argument, default in zip(with_default, arguments.defaults, strict=True):
        yield argument.arg, default
    for argument, keyword in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword is not None:
            yield argument.arg, keyword


def _named(name: str, *, fields: bool) -> tuple[str, str]:
    """The name if it is one of a time, and its unit."""
    if match := _CONSTANT.fullmatch(name):
        return name, (match[1] or "S").lower()
    if fields and (match := _FIELD.fullmatch(name)) and not name.endswith("_unix_s"):
        return name, match[1]
    return "", ""


def _seconds(node: ast.expr, unit: str, path: Path) -> Value | None:
    """None: it is no number that stands there."""
    if isinstance(node, ast.Tuple):
        each = [_number(one, path) for one in node.elts]
        numbers = tuple(one for one in each if one is not None)
        return tuple(one * _UNIT_S[unit] for one in numbers) if len(numbers) == len(each) else None
    number = _number(node, path)
    return None if number is None else number * _UNIT_S[unit]


def _number(node: ast.expr, path: Path) -> float | None:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return float(node.value)  # type: ignore[arg-type]
    if isinstance(node, ast.Name):
        return _of_name(node.id, path)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = _number(node.left, path), _number(node.right, path)
        return None if left is None or right is None else left + right
    if isinstance(node, ast.Call) and [one.arg for one in node.keywords] == ["seconds"]:
        return _number(node.keywords[0].value, path)  # a timedelta
    return None


def _of_name(name: str, path: Path) -> float | None:
    """Of a constant of this module, or of one that it imports."""
    for node in parsed(path).body:
        for target, value in _assigned(node):
            if target == name:
                return _number(value, path)
        if isinstance(node, ast.ImportFrom) and name in [one.name for one in node.names]:
            base = ROOT / (node.module or "").replace(".", "/")
            for file in (base.with_suffix(".py"), base / "__init__.py"):
                if file.exists():
                    return _of_name(name, file)
    return None


def unbounded() -> set[str]:
    """``PATH::FUNCTION`` of each call that waits without saying for how long."""
    found = set()
    for path in sources("ina"):
        if path.suffix != ".py":
            continue
        for function, call in _calls(parsed(path), ""):
            has_none = not call.args and not call.keywords
            if has_none and isinstance(call.func, ast.Attribute) and call.func.attr in _WAITS:
                found.add(f"{path.relative_to(ROOT).as_posix()}::{function}")
    return found


def unnamed() -> set[str]:
    """``PATH:LINE`` of each deadline that is a number within a call, and so has no name."""
    found = set()
    for path in sources("ina"):
        if path.suffix != ".py":
            continue
        for _, call in _calls(parsed(path), ""):
            for keyword in call.keywords:
                is_time = keyword.arg is not None and re.search("timeout|deadline", keyword.arg)
                if is_time and _is_number(keyword.value):
                    found.add(f"{path.relative_to(ROOT).as_posix()}:{call.lineno}")
            name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
            if name in ("wait", "join", "settimeout") and call.args and _is_number(call.args[0]):
                found.add(f"{path.relative_to(ROOT).as_posix()}:{call.lineno}")
    return found


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value != 0


def _calls(node: ast.AST, function: str) -> Iterator[tuple[str, ast.Call]]:
    """Calls below, each with the innermost function or class that it stands in."""
    for child in ast.iter_child_nodes(node):
        inner = child.name if isinstance(
            child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else function  # fmt: skip
        if isinstance(child, ast.Call):
            yield function, child
        yield from _calls(child, inner)


def shown(value: Value) -> str:
    """As the page says it: ``30 s``, ``200 ms``, ``50 µs``."""
    if isinstance(value, tuple):
        return ", ".join(shown(one) for one in value)
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size * (1 - 1e-9):
            return f"{value / size:g} {unit}"
    return f"{value / 1e-9:g} ns"
