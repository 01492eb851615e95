"""The program that the switch runs, as its schema says: names, widths, keys, data, entries.

The compiler puts the pipe's name before those of the program (``pipe.PoolIngress...``) in tables,
and not in actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import IPv4Address
from typing import Any

from ina.tables.bfrt.refusals import Refusals
from ina.tables.errors import SwitchError
from ina.tables.values import Count, Entry, Match, MatchValue, lpm_text

PIPE = "pipe."
PACKETS, BYTES = "$COUNTER_SPEC_PKTS", "$COUNTER_SPEC_BYTES"
_COUNTER_INDEX = "$COUNTER_INDEX"
_ARRAYS = ("Counter", "Register")
_OWN_FIELDS = ("action_name", "is_default_entry")


class Program:
    """One program's tables. ``gc``: the client module; ``info``: its description of the program."""

    def __init__(self, gc: Any, info: Any, refusals: Refusals) -> None:
        self._gc = gc
        self._info = info
        self._refusals = refusals
        self.name: str = info.p4_name_get()

    def table(self, name: str) -> Any:
        """The client's table of that name. Raises :class:`SwitchError`."""
        full = name if name.startswith("$") else PIPE + name
        try:
            return self._info.table_get(full)
        except KeyError:
            raise self.error(f"it has no table {full}") from None

    def tables(self) -> Iterator[str]:
        """Names of the program's tables whose entries a controller can write."""
        for full, info in self._info.parsed_info.table_info_dict_get().items():
            is_ours = full.startswith(PIPE) and str(info.table_type).startswith("MatchAction")
            if is_ours and "ConstTable" not in info.attributes_supported_get():
                yield full.removeprefix(PIPE)

    def arrays(self) -> Iterator[str]:
        """Names of its counters and registers."""
        for full, info in self._info.parsed_info.table_info_dict_get().items():
            if full.startswith(PIPE) and info.table_type in _ARRAYS:
                yield full.removeprefix(PIPE)

    def key(self, name: str, match: Match) -> Any:
        """A key of the table. Raises :class:`SwitchError`: no such field, or a value too wide."""
        table = self.table(name)
        known = table.info.key_field_name_list_get()
        fields = []
        for field, value in match:
            if field not in known:
                raise self.error(f"table {name} has no key {field}")
            bits = table.info.key_field_size_get(field)[1]
            kind = table.info.key_field_match_type_get(field)
            fields.append(self._key_tuple(f"table {name}: key {field}", field, kind, bits, value))
        return table.make_key(fields)

    def data(self, name: str, action: str, params: Iterable[tuple[str, int]]) -> Any:
        """An action with its parameters. Raises :class:`SwitchError`."""
        table = self.table(name)
        if action not in table.info.action_name_list_get():
            raise self.error(f"table {name} has no action {action}")
        known = table.info.data_field_name_list_get(action)
        fields = []
        for field, value in params:
            if field not in known:
                raise self.error(f"action {action} has no parameter {field}")
            bits = table.info.data_field_size_get(field, action)[1]
            self._check_width(f"action {action}: parameter {field}", value, bits)
            fields.append(self._gc.DataTuple(field, value))
        return table.make_data(fields, action)

    def cell_key(self, counter: str, index: int) -> Any:
        """A cell of an indirect counter. Raises :class:`SwitchError`."""
        return self.key(counter, ((_COUNTER_INDEX, index),))

    def zero(self, counter: str) -> Any:
        """A counter's data: nothing seen."""
        return self.table(counter).make_data(
            [self._gc.DataTuple(PACKETS, 0), self._gc.DataTuple(BYTES, 0)]
        )

    def read_entry(self, name: str, key: Any, data: Any) -> Entry:
        """What was read, in the program's terms."""
        values = data.to_dict()
        params = {
            field: value
            for field, value in values.items()
            if field not in _OWN_FIELDS and not field.startswith("$")
        }
        return Entry(name, self.match(key), values["action_name"] or "", tuple(params.items()))

    def match(self, key: Any) -> Match:
        """A key that was read."""
        return tuple(
            (field, _shown(field, value))
            for field, value in key.to_dict().items()
            if not field.startswith("$")
        )

    @staticmethod
    def count(data: Any) -> Count:
        """What a counter, or an entry with one, has seen."""
        values = data.to_dict()
        return Count(values[PACKETS], values[BYTES])

    def _key_tuple(self, what: str, field: str, kind: str, bits: int, value: MatchValue) -> Any:
        if isinstance(value, int):
            self._check_width(what, value, bits)
            if kind != "Exact":
                raise self.error(f"{what}: a number, for a match that is {kind}")
            return self._gc.KeyTuple(field, value)
        first, slash, length = value.partition("/")
        if kind != "LPM" or not slash:
            raise self.error(f"{what}: {value!r}, for a match that is {kind}")
        return self._gc.KeyTuple(field, int(IPv4Address(first)), prefix_len=int(length))

    def _check_width(self, what: str, value: int, bits: int) -> None:
        if not 0 <= value < 1 << bits:
            raise self.error(f"{what}: {value} does not fit into {bits} bits")

    def error(self, what: str) -> SwitchError:
        """That names the switch and the program; it is refused."""
        return self._refusals.error(f"program {self.name}: {what}", refused=True)


def _shown(field: str, value: Mapping[str, Any]) -> MatchValue:
    """An exact match's number; another match as text."""
    number = value.get("value")
    if set(value) == {"value"} and isinstance(number, int):
        return number
    if "prefix_len" in value:
        return lpm_text(value["value"], value["prefix_len"], is_ipv4=field.endswith("_addr"))
    if "mask" in value:
        return f"{number}/&{value['mask']}"
    if "low" in value:
        return f"{value['low']}...{value['high']}"
    return str(number)
