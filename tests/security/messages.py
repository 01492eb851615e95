"""Random protobuf messages, and mutations of good ones. The same seed gives the same messages."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from tests.selection import LONG

CALLS = int(os.environ.get("INA_FUZZ_CALLS", "400"))
"""Calls a seed."""
SEEDS = [int(seed) for seed in os.environ.get("INA_FUZZ_SEEDS", "1 2 3" if LONG else "1").split()]
"""To replay a failure: INA_FUZZ_SEEDS=<its seed>."""

_MAX_DEPTH = 6
_F = FieldDescriptor
_BITS = {
    _F.CPPTYPE_INT32: (32, True),
    _F.CPPTYPE_UINT32: (32, False),
    _F.CPPTYPE_INT64: (64, True),
    _F.CPPTYPE_UINT64: (64, False),
}
_TEXTS = [
    "",
    "x",
    "default",
    "x" * 5000,
    "\x00",
    "a\nb",
    "\x1b[31mred",
    "名前",
    "../../etc",
    "'; --",
]
_FLOATS = [0.0, -1.0, 0.001, 0.2, 1e308, float("nan"), float("inf"), -float("inf")]


class Maker:
    """Draws messages; ``texts`` are names worth trying, such as those of live jobs."""

    def __init__(self, seed: int, texts: Sequence[str] = ()) -> None:
        self.random = random.Random(seed)
        self._texts = [*_TEXTS, *texts]

    def message(self, kind: type[Message]) -> Message:
        """A message of random fields."""
        made = kind()
        self._fill(made, 0)
        return made

    def mutation(self, good: Message) -> Message:
        """A copy with one to three fields, at any depth, set to something else."""
        made = type(good)()
        made.CopyFrom(good)
        for _ in range(self.random.randint(1, 3)):
            target = self.random.choice(_parts(made))
            fields: list[Any] = list(target.DESCRIPTOR.fields)
            if fields:
                field = self.random.choice(fields)
                target.ClearField(field.name)
                if self.random.random() < 0.8:
                    self._set(target, field, _MAX_DEPTH - 2)
        return made

    def noise(self, good: Message) -> bytes:
        """Its bytes with some flipped, cut off or added: most are no message any more."""
        data = bytearray(good.SerializeToString() or b"\x08\x01")
        for _ in range(self.random.randint(1, 4)):
            data[self.random.randrange(len(data))] = self.random.randrange(256)
        if self.random.random() < 0.3:
            return bytes(data[: self.random.randrange(len(data))])
        return bytes(data) + self.random.randbytes(self.random.choice([0, 0, 3, 50]))

    def _fill(self, target: Message, depth: int) -> None:
        for field in target.DESCRIPTOR.fields:
            if self.random.random() < 0.5:
                self._set(target, field, depth)

    def _set(self, target: Any, field: Any, depth: int) -> None:
        is_message = field.cpp_type == _F.CPPTYPE_MESSAGE
        if is_message and (depth >= _MAX_DEPTH or _is_map(field)):
            return
        if field.is_repeated:
            for _ in range(self.random.choice([1, 1, 2, 3, 40])):
                if is_message:
                    self._fill(getattr(target, field.name).add(), depth + 1)
                else:
                    getattr(target, field.name).append(self._scalar(field))
        elif is_message:
            getattr(target, field.name).SetInParent()
            self._fill(getattr(target, field.name), depth + 1)
        else:
            setattr(target, field.name, self._scalar(field))

    def _scalar(self, field: FieldDescriptor) -> Any:
        draw = self.random
        if field.type == _F.TYPE_BYTES:
            return draw.choice([b"", b"\x00", b"\x01", b"\x00\x01", draw.randbytes(32)])
        match field.cpp_type:
            case _F.CPPTYPE_STRING:
                return draw.choice(self._texts)
            case _F.CPPTYPE_BOOL:
                return draw.random() < 0.5
            case _F.CPPTYPE_DOUBLE | _F.CPPTYPE_FLOAT:
                return draw.choice(_FLOATS)
            case _F.CPPTYPE_ENUM:
                assert field.enum_type is not None
                return draw.choice([*(v.number for v in field.enum_type.values), -1, 12345])
        bits, signed = _BITS[field.cpp_type]
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        return draw.choice([0, 1, 2, 3, low, high, draw.randint(low, high), draw.randint(0, 300)])


def _parts(message: Message) -> list[Message]:
    """The message and every message in it."""
    found = [message]
    for field, value in message.ListFields():
        if field.cpp_type == _F.CPPTYPE_MESSAGE and not _is_map(field):
            for child in value if field.is_repeated else [value]:
                found += _parts(child)
    return found


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry
