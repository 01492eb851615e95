"""Where the P4 source first uses a header. p4c writes no place into declarations of headers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ina.switch.ir.json_access import Json, get_list, get_objects, get_source
from ina.switch.ir.source import UNKNOWN, Source

_SECTIONS = ("parsers", "actions", "pipelines", "calculations", "checksums", "deparsers")
"""In the order of preference; for a header that is only extracted and sent, the deparser's own."""


def place_of_field(root: Json, type_name: str, field: str) -> Source | None:
    """The first use of a header or stack of this type; of metadata, of the field or of all of
    them at once. None: there is no use."""
    instances = [*get_objects(root, "headers"), *get_objects(root, "header_stacks")]
    instances = [item for item in instances if item.get("header_type") == type_name]
    only = field if any(item.get("metadata") for item in instances) else None
    return _first_use(root, [item.get("name") for item in instances], only)


def place_of_union(root: Json, union: Json) -> Source:
    """The first use of a header union, of a stack of them, of a header that is one, or of what is
    in it."""
    names, unions = [union.get("name")], [union]
    if "header_union_ids" in union:
        unions = _with_ids(root, "header_unions", get_list(union, "header_union_ids"))
    for each in unions:
        members = _with_ids(root, "headers", get_list(each, "header_ids"))
        names += [each.get("name"), *(member.get("name") for member in members)]
    for union_type in get_objects(root, "header_union_types"):
        if union_type.get("name") == union.get("header_type"):
            parts = get_list(union_type, "headers")
            names += [f"{union.get('name')}.{part[0]}" for part in parts]
    return place_of(root, names)


def _with_ids(root: Json, key: str, ids: list[Any]) -> list[Json]:
    return [item for item in get_objects(root, key) if item.get("id") in ids]


def place_of(root: Json, names: list[Any]) -> Source:
    """The innermost line around the first use of one of the names; where p4c gives no line, the
    parser state; UNKNOWN if there is no use."""
    return _first_use(root, names) or UNKNOWN


def _first_use(root: Json, names: list[Any], field: str | None = None) -> Source | None:
    """With a field: of that one, or of the whole header. None: there is no use."""
    search = _Search(frozenset(filter(None, names)), field)
    found = [search.innermost(root.get(section), UNKNOWN) for section in _SECTIONS]
    uses = [place for place in found if place is not None]
    return next((place for place in uses if place.line), uses[0] if uses else None)


@dataclass(frozen=True)
class _Search:
    names: frozenset[str]
    field: str | None

    def innermost(self, node: Any, around: Source) -> Source | None:
        """None: none of the names is used here."""
        if isinstance(node, list):
            children = node
        elif isinstance(node, dict):
            around = _place(node, around)
            if any(self._is_named(node.get(key)) for key in ("value", "target")):
                return around
            if any(name in self.names for name in node.get("order") or ()):
                return around
            children = list(node.values())
        else:
            return None
        unplaced = None
        for child in children:
            found = self.innermost(child, around)
            if found is not None and found.line:
                return found
            unplaced = unplaced or found
        return unplaced

    def _is_named(self, operand: Any) -> bool:
        """A header, or [header, field]."""
        if isinstance(operand, list) and len(operand) == 2:
            name, field = operand
            return isinstance(name, str) and name in self.names and self.field in (None, field)
        return isinstance(operand, str) and operand in self.names


def _place(node: Json, around: Source) -> Source:
    place = get_source(node)
    if place.line:
        return place
    return Source(state=str(node.get("name"))) if "parser_ops" in node else around
