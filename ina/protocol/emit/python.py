"""Emits the fields of :class:`ina.protocol.codec.Header`."""

from __future__ import annotations

from ina.protocol import spec
from ina.protocol.emit.notice import notice

_TYPES = {
    "version": ("int", "VERSION"),
    "kind": ("Kind", "Kind.CONTRIBUTION"),
    "flags": ("Flag", "NO_FLAGS"),
    "value_type": ("int", "ValueType.INT32"),
}
"""Of a field that is no plain number, or not 0 unless it is given."""


def render() -> str:
    """Returns the text of ``ina/protocol/generated/header_fields.py``."""
    return "\n".join(
        [
            *notice("#"),
            '"""The header\'s fields, in wire order; spec.FIELDS says what each means."""',
            "",
            "from __future__ import annotations",
            "",
            "from dataclasses import dataclass",
            "",
            "from ina.protocol.spec import NO_FLAGS, VERSION, Flag, Kind, ValueType",
            "",
            "",
            "@dataclass(frozen=True)",
            "class HeaderFields:",
            '    """What :class:`ina.protocol.codec.Header` has."""',
            "",
            *(f"    {field.name}: {_type(field.name)}" for field in spec.FIELDS),
            "",
        ]
    )


def _type(name: str) -> str:
    kind, default = _TYPES.get(name, ("int", "0"))
    return f"{kind} = {default}"
