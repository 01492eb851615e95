"""Multicast groups as the packet replication engine has them: a group of nodes, a node a copy.

A node's number is its group's, shifted by 8 bits, plus its place in it. So whose a node is shows,
and what a controller leaves that dies between a node and its group is found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc

from ina.tables.bfrt.refusals import Refusals
from ina.tables.values import Group

GROUPS, NODES = "$pre.mgid", "$pre.node"
_GROUP, _NODE = "$MGID", "$MULTICAST_NODE_ID"
_INSTANCE, _PORTS, _LAGS = "$MULTICAST_RID", "$DEV_PORT", "$MULTICAST_LAG_ID"
_EXCLUDES, _EXCLUSION = "$MULTICAST_NODE_L1_XID_VALID", "$MULTICAST_NODE_L1_XID"
_PLACE_BITS = 8
MAX_COPIES = 1 << _PLACE_BITS
_SOFTWARE = {"from_hw": False}
"""What the driver remembers; the engine itself cannot be read."""


class Multicast:
    """The two tables. Every method blocks, and raises what the client raises, or SwitchError."""

    def __init__(self, gc: Any, info: Any, target: Any, refusals: Refusals) -> None:
        self._gc, self._target, self._refusals = gc, target, refusals
        self._groups, self._nodes = info.table_get(GROUPS), info.table_get(NODES)

    def insert(self, group: Group) -> None:
        """Makes a group; refused where there is one."""
        if len(group.replicas) > MAX_COPIES:
            raise self._refusals.error(
                f"group {group.number}: {len(group.replicas)} copies, at most {MAX_COPIES}",
                refused=True,
            )
        if self._members(group.number) is not None:
            raise self._refusals.error(f"there is a group {group.number}", refused=True)
        nodes = [group.number << _PLACE_BITS | place for place in range(len(group.replicas))]
        self._delete_nodes(nodes)  # what somebody left who died here
        if nodes:
            self._nodes.entry_add(
                self._target,
                [self._node_key(node) for node in nodes],
                [self._node_data(port, instance) for port, instance in group.replicas],
            )
        try:
            self._groups.entry_add(
                self._target, [self._group_key(group.number)], [self._group_data(nodes)]
            )
        except Exception:
            self._delete_nodes(nodes)
            raise

    def modify(self, group: Group) -> None:
        """Makes a group another one. For a moment there is none: the engine swaps no nodes."""
        if self._members(group.number) is None:
            raise self._refusals.error(f"there is no group {group.number}", refused=True)
        self.delete(group.number)
        self.insert(group)

    def delete(self, number: int) -> None:
        """Takes a group off, and its nodes; nothing happens where there is none."""
        nodes = self._members(number)
        if nodes is not None:
            self._delete(self._groups, [self._group_key(number)])
            self._delete_nodes(nodes)

    def read(self) -> list[Group]:
        """Every group, copies in the order of their nodes."""
        copies = {
            key.to_dict()[_NODE]["value"]: self._copies(data)
            for data, key in self._nodes.entry_get(self._target, [], _SOFTWARE)
        }
        return [
            Group(
                key.to_dict()[_GROUP]["value"],
                tuple(copy for node in data.to_dict()[_NODE] for copy in copies.get(node, ())),
            )
            for data, key in self._groups.entry_get(self._target, [], _SOFTWARE)
        ]

    def sweep(self, numbers: range) -> int:
        """Deletes nodes of these groups that are in no group; returns how many."""
        used = {
            node
            for data, _ in self._groups.entry_get(self._target, [], _SOFTWARE)
            for node in data.to_dict()[_NODE]
        }
        found = [
            key.to_dict()[_NODE]["value"]
            for _, key in self._nodes.entry_get(self._target, [], _SOFTWARE)
        ]
        lost = [node for node in found if node >> _PLACE_BITS in numbers and node not in used]
        self._delete_nodes(lost)
        return len(lost)

    def _members(self, number: int) -> list[int] | None:
        """A group's nodes; None: there is no such group."""
        try:
            found = list(self._groups.entry_get(self._target, [self._group_key(number)], _SOFTWARE))
        except self._gc.BfruntimeRpcException as error:
            if self._refusals.is_only(error, grpc.StatusCode.NOT_FOUND):
                return None
            raise
        return list(found[0][0].to_dict()[_NODE]) if found else None

    def _delete_nodes(self, nodes: Sequence[int]) -> None:
        if nodes:
            self._delete(self._nodes, [self._node_key(node) for node in nodes])

    def _delete(self, table: Any, keys: list[Any]) -> None:
        try:
            table.entry_del(self._target, keys)
        except self._gc.BfruntimeRpcException as error:
            if not self._refusals.is_only(error, grpc.StatusCode.NOT_FOUND):
                raise

    def _group_key(self, number: int) -> Any:
        return self._groups.make_key([self._gc.KeyTuple(_GROUP, number)])

    def _node_key(self, node: int) -> Any:
        return self._nodes.make_key([self._gc.KeyTuple(_NODE, node)])

    def _node_data(self, port: int, instance: int) -> Any:
        return self._nodes.make_data(
            [
                self._gc.DataTuple(_INSTANCE, instance),
                self._gc.DataTuple(_LAGS, int_arr_val=[]),
                self._gc.DataTuple(_PORTS, int_arr_val=[port]),
            ]
        )

    def _group_data(self, nodes: Sequence[int]) -> Any:
        return self._groups.make_data(
            [
                self._gc.DataTuple(_NODE, int_arr_val=list(nodes)),
                self._gc.DataTuple(_EXCLUDES, bool_arr_val=[False] * len(nodes)),
                self._gc.DataTuple(_EXCLUSION, int_arr_val=[0] * len(nodes)),
            ]
        )

    @staticmethod
    def _copies(data: Any) -> list[tuple[int, int]]:
        values = data.to_dict()
        return [(port, values[_INSTANCE]) for port in values[_PORTS]]
