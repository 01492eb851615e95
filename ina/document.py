"""Tables that people write (TOML, JSON) as structures: which key is wrong, and what was meant.

msgspec says that a key or a name is wrong; this says where it stands, which ones there are, and
which of them is close to what was written.
"""

from __future__ import annotations

import difflib
import enum
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from ina.errors import InvalidInputError

_Form = TypeVar("_Form")
_STEP = re.compile(r"\.(\w+)|\[(\d+|\.\.\.)\]")
_KEY_ERROR = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.S)
_VALUE_ERROR = re.compile(r"Invalid enum value (.*)", re.S)


class DocumentError(InvalidInputError):
    """A table is wrong. The message is the key and the problem; the caller adds the file."""

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(f"{key}: {problem}" if key else problem)


def convert(table: Any, form: type[_Form], under: str = "") -> _Form:
    """``table`` as ``form``. Raises :class:`DocumentError` that names the key below ``under``."""
    try:
        return msgspec.convert(table, form)
    except msgspec.ValidationError as error:
        reason, _, place = str(error).rpartition(" - at `$")
        if not reason:
            reason, place = str(error), "`"
        where, there, wanted = _walk(table, form, place.removesuffix("`"))
        key, problem = _explain(reason, there, wanted)
        inner = ".".join(part for part in (where, key) if part)
        raise DocumentError(_joined(under, inner), problem) from None


def none_of(value: object, known: Iterable[object]) -> str:
    """``'pol' is none of 'pool', 'shared'; did you mean 'pool'?``."""
    names = [text for name in known if (text := str(name))]
    listed = ", ".join(names) or "nothing: there is none"
    return f"{value!r} is none of {listed}{did_you_mean(str(value), names)}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'pool'?``, where one of the names is close; else nothing."""
    close = difflib.get_close_matches(name.lower(), known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _explain(reason: str, there: Any, wanted: Any) -> tuple[str, str]:
    """The key that is meant below the place, if one is, and the problem with it."""
    if found := _KEY_ERROR.fullmatch(reason):
        if found[1] == "missing required":
            return found[2], "missing"
        keys = [field.encode_name for field in _fields(wanted)]
        meant = did_you_mean(found[2], keys) or f"; there are {', '.join(keys)}"
        return found[2], f"unknown key{meant}"
    if _VALUE_ERROR.fullmatch(reason) and (names := list(_names(wanted))):
        return "", none_of(there, names)
    return "", reason[:1].lower() + reason[1:]


def _walk(table: Any, form: Any, place: str) -> tuple[str, Any, Any]:
    """Follows msgspec's path: the keys as they are written, what stands there, what is wanted.

    msgspec writes ``[...]`` for any key of a mapping; here it is the first one that is refused.
    """
    where, there, wanted = "", table, form
    for name, index in _STEP.findall(place):
        if name:
            where = f"{where}.{name}"
            fields = [field for field in _fields(wanted) if field.encode_name == name]
            wanted = fields[0].type if fields else Any
            there = there.get(name) if isinstance(there, Mapping) else None
            continue
        wanted = _of_items(wanted, is_mapping=isinstance(there, Mapping))
        if isinstance(there, Mapping):
            key = next((key for key, item in there.items() if _refused(item, wanted)), "...")
            where, there = f"{where}.{key}", there.get(key)
        elif index.isdecimal() and isinstance(there, list | tuple):
            where, there = f"{where}[{index}]", there[int(index)]
        else:
            where, there = f"{where}[{index}]", None
    return where.lstrip("."), there, wanted


def _refused(item: Any, form: Any) -> bool:
    try:
        msgspec.convert(item, form)
    except msgspec.ValidationError:
        return True
    return False


def _alternatives(form: Any) -> Iterator[Any]:
    if get_origin(form) in (Union, types.UnionType):
        for one in get_args(form):
            yield from _alternatives(one)
    elif hasattr(form, "__metadata__"):  # Annotated
        yield from _alternatives(form.__origin__)
    else:
        yield form


def _first(form: Any, found: Callable[[Any], Any]) -> Any:
    return next((got for one in _alternatives(form) if (got := found(one))), None)


def _fields(form: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
    def of(one: Any) -> tuple[msgspec.structs.FieldInfo, ...]:
        is_struct = isinstance(one, type) and issubclass(one, msgspec.Struct)
        return msgspec.structs.fields(one) if is_struct else ()

    return _first(form, of) or ()


def _of_items(form: Any, *, is_mapping: bool) -> Any:
    def of(one: Any) -> Any:
        arguments = get_args(one)
        if not arguments or get_origin(one) is Literal:
            return None
        is_a_mapping = issubclass(get_origin(one), Mapping)
        return arguments[1 if is_mapping else 0] if is_a_mapping == is_mapping else None

    return _first(form, of) or Any


def _names(form: Any) -> Iterator[object]:
    for one in _alternatives(form):
        if get_origin(one) is Literal:
            yield from get_args(one)
        elif isinstance(one, type) and issubclass(one, enum.Enum):
            yield from (member.value for member in one)


def _joined(under: str, inner: str) -> str:
    return f"{under}{'' if inner.startswith('[') or not (under and inner) else '.'}{inner}"
