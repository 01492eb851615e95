"""State of a test's program, as P4Runtime would write it, straight into a pipeline."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from ina.switch.ir.program import Key, MatchKind
from ina.switch.match import Exact, KeyMatch, Lpm, Optional, Range, Ternary
from ina.switch.pipeline import Pipeline
from ina.tables.values import AnyItem, Entry, Group, MatchValue


def fill(pipeline: Pipeline, items: Sequence[AnyItem]) -> dict[Entry, int]:
    """Returns the entries' handles."""
    handles = {}
    for item in items:
        if isinstance(item, Group):
            pipeline.set_multicast(item.number, item.replicas)
        elif isinstance(item, Entry):
            table = pipeline.program.table(item.table)
            assert table is not None
            said = dict(item.match)
            matches = [
                _match(key, said.get(f"hdr.{key.name}", said.get(key.name))) for key in table.keys
            ]
            params = [value for _, value in item.params]
            handles[item] = pipeline.insert(item.table, matches, item.action, params, item.priority)
    return handles


def _match(key: Key, value: MatchValue | None) -> KeyMatch:
    if key.kind is MatchKind.OPTIONAL:
        assert value is None or isinstance(value, int)
        return Optional(value)
    if value is None:
        full = (1 << key.width_bits) - 1
        return Range(0, full) if key.kind is MatchKind.RANGE else Ternary(0, 0)
    if isinstance(value, int):
        return Exact(value)
    if "/&" in value:
        number, mask = (int(part, 16) for part in value.split("/&"))
        return Ternary(number & mask, mask)
    if "..." in value:
        low, high = (int(part) for part in value.split("..."))
        return Range(low, high)
    network = ipaddress.ip_network(value)
    return Lpm(int(network.network_address), network.prefixlen)
