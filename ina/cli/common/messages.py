"""Protobuf messages as plain data for JSON, with the names of the .proto file."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import Message


def plain(message: Message) -> dict[str, Any]:
    """Every field, also where it has its default; a message that is not set is None.

    Unlike protobuf's own JSON, 64-bit integers are numbers; enumerations are their names, bytes
    are hexadecimal.
    """
    return {field.name: _field(message, field) for field in message.DESCRIPTOR.fields}


def _field(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        return [_value(field, item) for item in value]
    if field.message_type is not None and not message.HasField(field.name):
        return None
    return _value(field, value)


def _value(field: Any, value: Any) -> Any:
    if isinstance(value, Message):
        return plain(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return known.name if known else value  # a newer controller's
    return value.hex() if isinstance(value, bytes) else value
