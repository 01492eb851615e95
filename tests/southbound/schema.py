"""What a BFRuntime server says of a program (``bf-rt.json``), and the SDE's own tables.

:func:`from_p4info` makes the document as p4c's BFRuntime generator does, from a P4Info; tables get
the pipe's name in front, actions do not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from finsy.proto import p4i
from google.protobuf import text_format

PIPE = "pipe."
_MATCH = {2: "Exact", 3: "LPM", 4: "Ternary", 5: "Range", 6: "Optional"}
_SCOPES = {0: "TableAndDefault", 1: "TableOnly", 2: "DefaultOnly"}

Table = dict[str, Any]


def from_p4info(path: Path) -> dict[str, Any]:
    """The document for the program of a P4Info in text form."""
    info = p4i.P4Info()
    text_format.Merge(path.read_text(), info)
    actions = {action.preamble.id: action for action in info.actions}
    counted = {counter.direct_table_id for counter in info.direct_counters}
    tables = [_match_table(table, actions, table.preamble.id in counted) for table in info.tables]
    tables += [
        {
            "name": PIPE + counter.preamble.name,
            "id": counter.preamble.id,
            "table_type": "Counter",
            "size": counter.size,
            "key": [_key(1, "$COUNTER_INDEX", "Exact", {"type": "uint32"}, mandatory=True)],
            "data": _counter_data(),
            "attributes": [],
        }
        for counter in info.counters
    ]
    tables += [
        {
            "name": PIPE + register.preamble.name,
            "id": register.preamble.id,
            "table_type": "Register",
            "size": register.size,
            "key": [_key(1, "$REGISTER_INDEX", "Exact", {"type": "uint32"}, mandatory=True)],
            "data": [_single(2, f"{register.preamble.name}.f1", _UINTS[32])],
            "attributes": [],
        }
        for register in info.registers
    ]
    return {"schema_version": "1.0.0", "tables": tables, "learn_filters": []}


def _match_table(table: Any, actions: dict[int, Any], counted: bool) -> Table:
    return {
        "name": PIPE + table.preamble.name,
        "id": table.preamble.id,
        "table_type": "MatchAction_Direct",
        "size": table.size,
        "has_const_default_action": bool(table.const_default_action_id),
        "key": [
            _key(f.id, f.name, _MATCH[f.match_type], {"type": "bytes", "width": f.bitwidth})
            for f in table.match_fields
        ],
        "action_specs": [
            {
                "id": ref.id,
                "name": actions[ref.id].preamble.name,
                "action_scope": _SCOPES[ref.scope],
                "data": [
                    {
                        "id": param.id,
                        "name": param.name,
                        "mandatory": True,
                        "read_only": False,
                        "repeated": False,
                        "annotations": [],
                        "type": {"type": "bytes", "width": param.bitwidth},
                    }
                    for param in actions[ref.id].params
                ],
            }
            for ref in table.action_refs
        ],
        "data": _counter_data() if counted else [],
        "attributes": ["EntryScope", *(["ConstTable"] if table.is_const_table else [])],
    }


def _counter_data() -> list[Table]:
    names = enumerate(("$COUNTER_SPEC_BYTES", "$COUNTER_SPEC_PKTS"), 65553)
    return [_single(i, name, {"type": "uint64", "default_value": 0}) for i, name in names]


def _key(
    number: int, name: str, match: str, kind: dict[str, Any], *, mandatory: bool = False
) -> Table:
    return {
        "id": number,
        "name": name,
        "repeated": False,
        "annotations": [],
        "mandatory": mandatory,
        "match_type": match,
        "type": kind,
    }


def _single(
    number: int,
    name: str,
    kind: dict[str, Any],
    *,
    mandatory: bool = False,
    repeated: bool = False,
    read_only: bool = False,
) -> Table:
    return {
        "mandatory": mandatory,
        "read_only": read_only,
        "singleton": {
            "id": number,
            "name": name,
            "repeated": repeated,
            "annotations": [],
            "type": kind,
        },
    }


def _choice(*words: str, prefix: str = "") -> dict[str, Any]:
    return {"type": "string", "choices": [prefix + word for word in words]}


_UINTS = {bits: {"type": f"uint{bits}"} for bits in (8, 16, 32, 64)}
_BOOL = {"type": "bool"}


def fixed_tables() -> list[Table]:
    """Those of the SDE's own that a controller of ours uses, with the fields that matter here."""
    port_key = _key(1, "$DEV_PORT", "Exact", _UINTS[32], mandatory=True)
    speeds = ("NONE", "1G", "10G", "25G", "40G", "50G", "100G", "200G", "400G")
    return [
        {
            "name": "$PORT",
            "id": 0xFF010001,
            "table_type": "PortConfigure",
            "size": 256,
            "key": [port_key],
            "data": [
                _single(1, "$SPEED", _choice(*speeds, prefix="BF_SPEED_")),
                _single(2, "$FEC", _choice(
                    "NONE", "FIRECODE", "REED_SOLOMON", "FC", "RS", prefix="BF_FEC_TYP_")),
                _single(3, "$N_LANES", _UINTS[32]),
                _single(4, "$PORT_ENABLE", _BOOL),
                _single(5, "$AUTO_NEGOTIATION", _choice(
                    "DEFAULT", "FORCE_ENABLE", "FORCE_DISABLE", prefix="PM_AN_")),
                _single(6, "$LOOPBACK_MODE", _choice(
                    "NONE", "MAC_NEAR", "MAC_FAR", "PCS_NEAR", prefix="BF_LPBK_")),
                _single(7, "$TX_MTU", _UINTS[32]),
                _single(8, "$RX_MTU", _UINTS[32]),
                _single(25, "$PORT_UP", _BOOL, read_only=True),
                _single(26, "$PORT_NAME", {"type": "string"}, read_only=True),
            ],
            "attributes": [],
        },
        {
            "name": "$PORT_HDL_INFO",
            "id": 0xFF010003,
            "table_type": "PortHdlInfo",
            "size": 256,
            "key": [
                _key(1, "$CONN_ID", "Exact", _UINTS[32]),
                _key(2, "$CHNL_ID", "Exact", _UINTS[32]),
            ],
            "data": [_single(1, "$DEV_PORT", _UINTS[32], read_only=True)],
            "attributes": [],
        },
        {
            "name": "$pre.mgid",
            "id": 0xFF020001,
            "table_type": "PreMgid",
            "size": 65536,
            "key": [_key(1, "$MGID", "Exact", _UINTS[16], mandatory=True)],
            "data": [
                _single(1, "$MULTICAST_NODE_ID", _UINTS[32], repeated=True),
                _single(2, "$MULTICAST_NODE_L1_XID_VALID", _BOOL, repeated=True),
                _single(3, "$MULTICAST_NODE_L1_XID", _UINTS[16], repeated=True),
            ],
            "attributes": [],
        },
        {
            "name": "$pre.node",
            "id": 0xFF020002,
            "table_type": "PreNode",
            "size": 1 << 24,
            "key": [_key(1, "$MULTICAST_NODE_ID", "Exact", _UINTS[32], mandatory=True)],
            "data": [
                _single(1, "$MULTICAST_RID", _UINTS[16], mandatory=True),
                _single(2, "$MULTICAST_LAG_ID", _UINTS[8], mandatory=True, repeated=True),
                _single(3, "$DEV_PORT", _UINTS[32], mandatory=True, repeated=True),
            ],
            "attributes": [],
        },
        {
            "name": "$mirror.cfg",
            "id": 0xFF040001,
            "table_type": "MirrorCfg",
            "size": 1024,
            "key": [_key(1, "$sid", "Exact", _UINTS[16], mandatory=True)],
            "action_specs": [{"id": 2, "name": "$normal", "data": []}],
            "data": [
                _single(5, "$session_enable", _BOOL),
                _single(6, "$direction", _choice("INGRESS", "EGRESS", "BOTH")),
                _single(7, "$ucast_egress_port", _UINTS[32]),
                _single(8, "$ucast_egress_port_valid", _BOOL),
                _single(23, "$max_pkt_len", _UINTS[16]),
            ],
            "attributes": [],
        },
    ]  # fmt: skip
