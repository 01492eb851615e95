"""Changes that keep an input's form, so that fuzzing gets past the first check.

Each takes an input, the most bytes of the new one, and a seed; libFuzzer's own mutations take turns
with these.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf.message import DecodeError, Message

from fuzz.records import Record, read_records, write_records
from tests.security.messages import Maker

Mutate = Callable[[bytes, int, int], bytes]
_NUMBERS = (0, 1, -1, 2, 7, 8, 63, 64, 65, 255, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 64)
_VALUES: tuple[Any, ...] = (None, True, False, "", "x", "0x1", "0x" + "f" * 40, [], {}, 1.5)


def of_records(types: Sequence[type[Message]], names: Sequence[str]) -> Mutate:
    """Of an input of messages: one of them is changed, made anew, doubled, moved or left out.

    ``types``: by the number in a record; ``names``: texts worth trying.
    """

    def mutate(data: bytes, most_bytes: int, seed: int) -> bytes:
        maker = Maker(seed, names)
        draw = maker.random
        records = read_records(data)
        place = draw.randrange(len(records) + 1)
        match draw.choice(
            ["change", "change", "change", "change", "new", "double", "move", "drop"]
        ):
            case "change" if place < len(records):
                records[place] = _changed(maker, types, records[place])
            case "double" if place < len(records):
                records.insert(draw.randrange(len(records) + 1), records[place])
            case "move" if place < len(records):
                records.insert(draw.randrange(len(records)), records.pop(place))
            case "drop" if place < len(records):
                del records[place]
            case _:
                number = draw.randrange(len(types))
                made = maker.message(types[number])
                records.insert(place, (number, made.SerializeToString()))
        return write_records(records)[:most_bytes]

    return mutate


def _changed(maker: Maker, types: Sequence[type[Message]], record: Record) -> Record:
    number, data = record
    try:
        message = types[number % len(types)].FromString(data)
    except DecodeError:
        return maker.random.randrange(len(types)), data
    return number, maker.mutation(message).SerializeToString()


def json_tree(data: bytes, most_bytes: int, seed: int) -> bytes:
    """Of a JSON text: some of its values become others, of its own or not, or go."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return data[:most_bytes]
    draw = random.Random(seed)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        places = list(_places(tree))
        if not places:
            break
        holder, key = draw.choice(places)
        other, its_key = draw.choice(places)
        match draw.choice(["value", "number", "other", "other", "other", "drop", "double"]):
            case "value":
                holder[key] = draw.choice(_VALUES)
            case "number":
                holder[key] = draw.choice(_NUMBERS)
            case "other":
                # By way of text: a copy, so that nothing holds itself.
                holder[key] = json.loads(json.dumps(other[its_key]))
            case "double" if isinstance(holder, list):
                holder.insert(key, json.loads(json.dumps(holder[key])))
            case _:
                del holder[key]
    made = json.dumps(tree, separators=(",", ":")).encode()
    return made if len(made) <= most_bytes else data[:most_bytes]


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Each value of it, as what holds it and the key or index there."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        keys = (
            node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
        )
        for key in keys:
            found.append((node, key))
            waiting.append(node[key])
    return found
