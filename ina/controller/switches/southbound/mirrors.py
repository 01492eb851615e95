"""Mirror sessions: copies of packets to a port."""

from __future__ import annotations

from typing import Any

import grpc

from ina.controller.config.tofino import MirrorConfig
from ina.tables.bfrt.refusals import Refusals

TABLE = "$mirror.cfg"
_NORMAL = "$normal"


class Mirrors:
    """The table. Methods block, and raise what the client raises."""

    def __init__(self, gc: Any, info: Any, target: Any, refusals: Refusals) -> None:
        self._gc, self._target, self._refusals = gc, target, refusals
        self._table = info.table_get(TABLE)

    def set_up(self, mirror: MirrorConfig, port: int) -> None:
        """Makes a session as configured, whether it is there or not. ``port``: its number."""
        gc = self._gc
        key = self._table.make_key([gc.KeyTuple("$sid", mirror.session)])
        data = self._table.make_data(
            [
                gc.DataTuple("$direction", str_val=mirror.direction.upper()),
                gc.DataTuple("$ucast_egress_port", port),
                gc.DataTuple("$ucast_egress_port_valid", bool_val=True),
                gc.DataTuple("$max_pkt_len", mirror.max_bytes),
                gc.DataTuple("$session_enable", bool_val=True),
            ],
            _NORMAL,
        )
        try:
            self._table.entry_add(self._target, [key], [data])
        except gc.BfruntimeRpcException as error:
            if not self._refusals.is_only(error, grpc.StatusCode.ALREADY_EXISTS):
                raise
            self._table.entry_mod(self._target, [key], [data])
