"""Where the P4 source first uses a header. p4c writes no place into declarations of headers."""

from __future__ import annotations

from typing import Any

from ina.switch.ir.json_access import Json, get_list, get_objects, get_source
from ina.switch.ir.source import UNKNOWN, Source

_SECTIONS = ("parsers", "actions", "pipelines", "calculations", "checksums", "deparsers")
"""In the order of preference; for a header that is only extracted and sent, the deparser's own."""


def place_of_type(root: Json, type_name: str) -> Source:
    """The first use of a header or stack of this type."""
    instances = [h for h in get_objects(root, "headers") if not h.get("metadata")]
    instances += get_objects(root, "header_stacks")
    return place_of(root, [i.get("name") for i in instances if i.get("header_type") == type_name])


def place_of_union(root: Json, union: Json) -> Source:
    """The first use of a header union, or of a stack of them, or of what is in it."""
    names, unions = [union.get("name")], [union]
    if "header_union_ids" in union:
        unions = _with_ids(root, "header_unions", get_list(union, "header_union_ids"))
    for each in unions:
        members = _with_ids(root, "headers", get_list(each, "header_ids"))
        names += [each.get("name"), *(member.get("name") for member in members)]
    return place_of(root, names)


def _with_ids(root: Json, key: str, ids: list[Any]) -> list[Json]:
    return [item for item in get_objects(root, key) if item.get("id") in ids]


def place_of(root: Json, names: list[Any]) -> Source:
    """The innermost place around the first use of one of the names; UNKNOWN if there is none."""
    for section in _SECTIONS:
        found = _innermost(root.get(section), frozenset(filter(None, names)), UNKNOWN)
        if found is not None and found.line:
            return found
    return UNKNOWN


def _innermost(node: Any, names: frozenset[str], around: Source) -> Source | None:
    """None: none of the names is used here."""
    if isinstance(node, list):
        children = node
    elif isinstance(node, dict):
        place = get_source(node)
        around = place if place.line else around
        if any(_is_name(node.get(key), names) for key in ("value", "target")):
            return around
        if any(name in names for name in node.get("order") or ()):
            return around
        children = list(node.values())
    else:
        return None
    unplaced = None
    for child in children:
        found = _innermost(child, names, around)
        if found is not None and found.line:
            return found
        unplaced = unplaced or found
    return unplaced


def _is_name(operand: Any, names: frozenset[str]) -> bool:
    """A header, or [header, field]."""
    name = operand[0] if isinstance(operand, list) and operand else operand
    return isinstance(name, str) and name in names
