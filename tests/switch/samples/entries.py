"""Random entries for the tables of a compiled program, as entries of its own.

They are written into the BMv2 JSON, as p4c writes `entries` of a P4 table: so every target that
takes the JSON has them, and none needs a control plane.
"""

from __future__ import annotations

import json
import random
from typing import Any

from ina.switch.ir import Program
from ina.switch.ir.program import Key, MatchKind

ENTRIES = 6
PORTS = 8
"""Action parameters are mostly below this, so that many packets leave by a port that there is."""


def with_random_entries(text: str, program: Program, random_: random.Random) -> str:
    """The JSON with entries in every table that has a key and none of its own."""
    root = json.loads(text)
    tables = {table.name: table for table in program.tables}
    by_id = {action["id"]: action for action in root["actions"]}
    for pipeline in root["pipelines"]:
        for node in pipeline["tables"]:
            table = tables.get(node["name"])
            if table is None or not table.keys or table.is_const:
                continue
            count = min(ENTRIES, table.max_size)
            found: dict[str, Any] = {}
            for number in range(count):
                key = [_match(key, random_) for key in table.keys]
                action = by_id[random_.choice(node["action_ids"])]
                found.setdefault(json.dumps(key), {
                    "match_key": key, "priority": number + 1,
                    "action_entry": {"action_id": action["id"], "action_data": [
                        _hex(_value(param["bitwidth"], random_), param["bitwidth"])
                        for param in action["runtime_data"]]},
                })  # fmt: skip
            node["entries"] = list(found.values())
    return json.dumps(root)


def _value(width_bits: int, random_: random.Random) -> int:
    if random_.random() < 0.8:
        return random_.randrange(min(PORTS, 1 << width_bits))
    return random_.getrandbits(width_bits)


def _match(key: Key, random_: random.Random) -> dict[str, Any]:
    width = key.width_bits
    full = (1 << width) - 1
    value = _value(width, random_)
    if key.kind is MatchKind.EXACT:
        return {"match_type": "exact", "key": _hex(value, width)}
    if key.kind is MatchKind.LPM:
        prefix = random_.choice([0, width, random_.randint(0, width)])
        mask = full ^ (full >> prefix)
        return {"match_type": "lpm", "key": _hex(value & mask, width), "prefix_length": prefix}
    if key.kind is MatchKind.RANGE:
        low, high = sorted((value, random_.choice([full, _value(width, random_)])))
        return {"match_type": "range", "start": _hex(low, width), "end": _hex(high, width)}
    mask = random_.choice([0, full, random_.getrandbits(width), 1])
    return {"match_type": "ternary", "key": _hex(value & mask, width), "mask": _hex(mask, width)}


def _hex(value: int, width_bits: int) -> str:
    return f"0x{value:0{(width_bits + 7) // 8 * 2}x}"
