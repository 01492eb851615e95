"""Typed access to the parsed JSON: a missing key or a wrong type is an InvalidProgramError."""

from __future__ import annotations

from typing import Any

from ina.switch.errors import InvalidProgramError
from ina.switch.ir.source import UNKNOWN, Source

Json = dict[str, Any]


def get_dict(node: Any, where: str) -> Json:
    """``node`` as an object."""
    if not isinstance(node, dict):
        raise InvalidProgramError(f"BMv2 JSON: {where} is not an object")
    return node


def get_list(node: Json, key: str) -> list[Any]:
    """The list ``node[key]``; absent is empty."""
    value = node.get(key, [])
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidProgramError(f"BMv2 JSON: {key!r} is not a list")
    return value


def get_objects(node: Json, key: str) -> list[Json]:
    """The list of objects ``node[key]``."""
    return [get_dict(item, f"an item of {key!r}") for item in get_list(node, key)]


def get_str(node: Json, key: str) -> str:
    """The string ``node[key]``."""
    value = node.get(key)
    if not isinstance(value, str):
        raise InvalidProgramError(f"BMv2 JSON: {key!r} is missing or not a string")
    return value


def get_int(node: Json, key: str) -> int:
    """The integer ``node[key]``."""
    value = node.get(key)
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidProgramError(f"BMv2 JSON: {key!r} is missing or not an integer")
    return value


def parse_hex(text: Any) -> int:
    """A ``hexstr`` value, possibly with a sign."""
    if not isinstance(text, str):
        raise InvalidProgramError(f"BMv2 JSON: {text!r} is not a hexadecimal string")
    try:
        return int(text, 16)
    except ValueError:
        raise InvalidProgramError(f"BMv2 JSON: {text!r} is not a hexadecimal string") from None


def get_source(node: Json) -> Source:
    """Where p4c says that the construct stands in the P4 source."""
    info = node.get("source_info")
    if not isinstance(info, dict):
        return UNKNOWN
    line = info.get("line")
    fragment = info.get("source_fragment")
    return Source(
        str(info.get("filename", "")),
        line if isinstance(line, int) else 0,
        fragment if isinstance(fragment, str) else "",
    )
