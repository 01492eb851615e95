"""A fake Tofino with a data plane: what is written to it goes to a soft switch of the same program.

So packets pass through what BFRuntime has set up. Names are the same in both twins but for the
pipe's; ports are the soft switch's.
"""

from __future__ import annotations

import os
from ipaddress import IPv4Address
from typing import Any

from ina.p4 import compiled
from ina.tables.values import Counter, DefaultAction, Entry, EntryCounter, Group
from ina.testing.control_plane import P4RuntimeClient
from tests.southbound.schema import PIPE, from_p4info
from tests.worlds.fakes.tofino import SERVERS, FakeTofino, Key, TableInfo, Values

VALUES = 64
VARIABLE = "INA_TEST_SOFT_SWITCH"
"""Where the soft switch of a fake is that a process of its own makes."""


class BridgedTofino(FakeTofino):
    """Keeps entries as any fake does, and has the soft switch forward by them."""

    def __init__(self, p4runtime: str, address: str = "") -> None:
        """``p4runtime``: host:port of the soft switch."""
        super().__init__(from_p4info(compiled(VALUES).p4info), f"ina_pool_{VALUES}")
        if address:
            del SERVERS[self.address]
            self.address = address
            SERVERS[address] = self
        registers = [t for t in self.tables.values() if t.table_type == "Register"]
        self._last_register = registers[-1]
        self._soft = P4RuntimeClient(p4runtime, 1)
        self._soft.set_pipeline(compiled(VALUES))
        self._zero: dict[tuple[str, int], tuple[int, int]] = {}
        """What the soft switch's counters showed when they were cleared: they only count on."""

    def close(self) -> None:
        super().close()
        self._soft.close()

    def _insert(self, table: TableInfo, key: Key, action: str | None, values: Values) -> None:
        super()._insert(table, key, action, values)
        self._mirror(table, key)

    def _modify(self, table: TableInfo, key: Key, action: str | None, values: Values) -> None:
        super()._modify(table, key, action, values)
        if table.table_type == "MatchAction_Direct":
            self._soft.delete([self._entry(table, key, values={"action_name": action})])
        self._mirror(table, key)

    def _delete(self, table: TableInfo, key: Key | None, action: None, values: None) -> None:
        gone = list(self.entries[table.name]) if key is None else [key]
        there = {one: self.entries[table.name].get(one) for one in gone}
        super()._delete(table, key, action, values)
        for one, held in there.items():
            if held is not None and table.table_type == "MatchAction_Direct":
                self._soft.delete([self._entry(table, one, held)])
            elif held is not None and table.name == "$pre.mgid":
                self._soft.delete([Group(dict(one)["$MGID"], ())])
        if key is None and table is self._last_register:  # counters have been cleared before it
            self._restart()

    def _default(self, table: TableInfo, key: None, action: Any, values: Any) -> None:
        super()._default(table, key, action, values)
        name = table.name.removeprefix(PIPE)
        if values is None:
            self._soft.delete([DefaultAction(name, "")])
        else:
            self._soft.insert([DefaultAction(name, action, tuple(values.items()))])

    def _find(self, table: TableInfo, key: Key) -> Values | None:
        found = super()._find(table, key)
        name = table.name.removeprefix(PIPE)
        if found is None or "$COUNTER_SPEC_PKTS" not in table.data:
            return found
        if table.table_type == "Counter":
            index = dict(key)["$COUNTER_INDEX"]
            packets, size = self._count(name, index)
            zero = self._zero.get((name, index), (0, 0))
            packets, size = packets - zero[0], size - zero[1]
        else:
            ((packets, size),) = self._soft.counts([EntryCounter(name, self._match(key))])
        return {**found, "$COUNTER_SPEC_PKTS": packets, "$COUNTER_SPEC_BYTES": size}

    def _mirror(self, table: TableInfo, key: Key) -> None:
        held = self.entries[table.name][key]
        if table.table_type == "MatchAction_Direct":
            self._soft.insert([self._entry(table, key, held)])
        elif table.table_type == "Counter":
            self._clear(table.name.removeprefix(PIPE), dict(key)["$COUNTER_INDEX"])
        elif table.name == "$pre.mgid":
            nodes = self.entries["$pre.node"]
            copies = [nodes[(("$MULTICAST_NODE_ID", n),)] for n in held["$MULTICAST_NODE_ID"]]
            replicas = tuple(
                (port, copy["$MULTICAST_RID"]) for copy in copies for port in copy["$DEV_PORT"]
            )
            self._soft.insert([Group(dict(key)["$MGID"], replicas)])

    def _restart(self) -> None:
        """Counters and registers are cleared: here by setting the pipeline, which empties all."""
        assert not any(
            held for name, held in self.entries.items() if name.startswith((PIPE, "$pre.mgid"))
        )
        self._soft.set_pipeline(compiled(VALUES))
        self._zero.clear()

    def _clear(self, name: str, index: int) -> None:
        self._zero[name, index] = self._count(name, index)

    def _count(self, name: str, index: int) -> tuple[int, int]:
        ((packets, size),) = self._soft.counts([Counter(name, index)])
        return packets, size

    def _entry(self, table: TableInfo, key: Key, values: Values) -> Entry:
        action = values["action_name"]
        params = {name: values[name] for name in table.actions[action] if name in values}
        name = table.name.removeprefix(PIPE)
        return Entry(name, self._match(key), action, tuple(params.items()))

    @staticmethod
    def _match(key: Key) -> tuple[tuple[str, int | str], ...]:
        return tuple(
            (name, part if isinstance(part, int) else f"{IPv4Address(part[0])}/{part[1]}")
            for name, part in key
        )


def start_from_environment() -> None:
    """For a process of its own, whose SDE is a fake: the BFRuntime server of the usual address."""
    address = os.environ.get(VARIABLE)
    if address and "127.0.0.1:50052" not in SERVERS:
        BridgedTofino(address, "127.0.0.1:50052")
