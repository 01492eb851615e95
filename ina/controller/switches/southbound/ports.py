"""The switch's ports: names of the front panel, speed, FEC, auto-negotiation, loopback."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import grpc

from ina.controller.config.tofino import PortConfig
from ina.fabric.ports import PortRef
from ina.tables.bfrt.refusals import Refusals
from ina.tables.errors import SwitchError
from ina.tables.values import PortState

_log = logging.getLogger(__name__)

PORTS, NAMES = "$PORT", "$PORT_HDL_INFO"
_PORT = "$DEV_PORT"
_SPEED, _FEC, _AUTONEG, _LANES = "$SPEED", "$FEC", "$AUTO_NEGOTIATION", "$N_LANES"
_LOOPBACK, _ENABLED, _UP, _NAME = "$LOOPBACK_MODE", "$PORT_ENABLE", "$PORT_UP", "$PORT_NAME"
_MTUS = ("$TX_MTU", "$RX_MTU")
_SOFTWARE = {"from_hw": False}

_FECS = {
    "none": "BF_FEC_TYP_NONE",
    "fc": "BF_FEC_TYP_FIRECODE",
    "rs": "BF_FEC_TYP_REED_SOLOMON",
}
_SAME = {"BF_FEC_TYP_FC": _FECS["fc"], "BF_FEC_TYP_RS": _FECS["rs"]}
"""Other names of the same; a driver may answer with either."""
_AUTONEGS = {
    "default": "PM_AN_DEFAULT",
    "on": "PM_AN_FORCE_ENABLE",
    "off": "PM_AN_FORCE_DISABLE",
}
_LOOPBACKS = {False: "BF_LPBK_NONE", True: "BF_LPBK_MAC_NEAR"}


class Ports:
    """The tables. Methods block, and raise what the client raises, or SwitchError."""

    def __init__(self, gc: Any, info: Any, target: Any, refusals: Refusals) -> None:
        self._gc, self._target, self._refusals = gc, target, refusals
        self._ports, self._names = info.table_get(PORTS), info.table_get(NAMES)
        self._known: dict[str, int] = {}

    def number(self, port: PortRef) -> int:
        """The device port; of a name that :meth:`resolve` has found. Raises SwitchError."""
        if isinstance(port, int):
            return port
        if port not in self._known:
            raise self._refusals.error(f"port {port}: the switch has no such front-panel port")
        return self._known[port]

    def resolve(self, ports: Iterable[PortRef]) -> None:
        """Asks the switch for the numbers of these names. Raises SwitchError: it has none."""
        for port in ports:
            if isinstance(port, str) and port not in self._known:
                self._known[port] = self._ask(port)

    def set_up(self, port: PortConfig) -> None:
        """Makes a port as configured; one that is so already is not touched."""
        number = self.number(port.port)
        wanted = self._wanted(port)
        there = self._read(number)
        if there is not None and all(there.get(name) == value for name, value in wanted.items()):
            return
        if there is not None:
            # A port's speed and FEC cannot be changed; it is made anew, and its link goes down.
            wrong = [name for name, value in wanted.items() if there.get(name) != value]
            _log.warning("port %s is made anew: %s differ", port.port, ", ".join(wrong))
            self._ports.entry_del(self._target, [self._key(number)])
        data = self._ports.make_data([self._tuple(*field) for field in wanted.items()])
        self._ports.entry_add(self._target, [self._key(number)], [data])

    def read(self, ports: Iterable[PortConfig]) -> list[PortState]:
        """How the configured ports are; one that is gone is left out."""
        states = []
        for port in ports:
            number = self.number(port.port)
            values = self._read(number)
            if values is not None:
                states.append(_state(number, values))
        return states

    def _ask(self, name: str) -> int:
        connector, _, channel = name.partition("/")
        key = self._names.make_key(
            [
                self._gc.KeyTuple("$CONN_ID", int(connector)),
                self._gc.KeyTuple("$CHNL_ID", int(channel)),
            ]
        )
        try:
            for data, _ in self._names.entry_get(self._target, [key], _SOFTWARE):
                return int(data.to_dict()[_PORT])
        except self._gc.BfruntimeRpcException as error:
            raise self._no_such(name, error) from None
        raise self._no_such(name, None)

    def _no_such(self, name: str, error: Exception | None) -> SwitchError:
        if error is not None and not self._refusals.codes(error) & {
            grpc.StatusCode.NOT_FOUND,
            grpc.StatusCode.INVALID_ARGUMENT,
        }:
            return self._refusals.translate(error, f"port {name}")
        return self._refusals.error(
            f"port {name}: the switch has no such front-panel port", refused=True
        )

    def _wanted(self, port: PortConfig) -> dict[str, Any]:
        wanted: dict[str, Any] = {
            _SPEED: f"BF_SPEED_{port.speed}",
            _FEC: _FECS[port.fec],
            _AUTONEG: _AUTONEGS[port.autoneg],
            _LOOPBACK: _LOOPBACKS[port.loopback],
            _ENABLED: True,
            **dict.fromkeys(_MTUS, port.mtu),
        }
        if port.lanes:
            wanted[_LANES] = port.lanes
        return wanted

    def _read(self, number: int) -> Mapping[str, Any] | None:
        try:
            found = list(self._ports.entry_get(self._target, [self._key(number)], _SOFTWARE))
        except self._gc.BfruntimeRpcException as error:
            if self._refusals.is_only(error, grpc.StatusCode.NOT_FOUND):
                return None
            raise
        if not found:
            return None
        values = dict(found[0][0].to_dict())
        values[_FEC] = _SAME.get(values[_FEC], values[_FEC])
        return values

    def _key(self, number: int) -> Any:
        return self._ports.make_key([self._gc.KeyTuple(_PORT, number)])

    def _tuple(self, name: str, value: Any) -> Any:
        if isinstance(value, bool):
            return self._gc.DataTuple(name, bool_val=value)
        if isinstance(value, str):
            return self._gc.DataTuple(name, str_val=value)
        return self._gc.DataTuple(name, value)


def _state(number: int, values: Mapping[str, Any]) -> PortState:
    def word(field: str, prefix: str) -> str:
        return str(values.get(field) or "").removeprefix(prefix).lower().replace("_", "-")

    return PortState(
        number,
        str(values.get(_NAME) or ""),
        word(_SPEED, "BF_SPEED_").upper(),
        word(_FEC, "BF_FEC_TYP_"),
        word(_AUTONEG, "PM_AN_"),
        word(_LOOPBACK, "BF_LPBK_"),
        bool(values.get(_ENABLED)),
        bool(values.get(_UP)),
    )
