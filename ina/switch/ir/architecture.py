"""What a program must have to be one for v1model, and where its intrinsic metadata stand."""

from __future__ import annotations

from dataclasses import replace

from ina.switch.errors import UnsupportedProgramError
from ina.switch.ir.data import STANDARD, Field
from ina.switch.ir.json_access import Json, get_objects
from ina.switch.ir.scope import Scope

_BESIDE = ("intrinsic_metadata", "queueing_metadata")
"""P4_14 declares these fields itself, in metadata of these names; v1model has one struct of all."""


def check_architecture(root: Json) -> None:
    """UnsupportedProgramError for programs of other switches: psa_switch, pna_nic, routers."""
    pipelines = {str(node.get("name")) for node in get_objects(root, "pipelines")}
    if not {"ingress", "egress"} <= pipelines:
        found = ", ".join(sorted(pipelines))
        raise UnsupportedProgramError(
            f"an architecture other than v1model (pipelines: {found}; expected: ingress, egress)"
        )


def check_standard_metadata(scope: Scope) -> None:
    """``egress_spec`` says where packets go; all other fields may be absent."""
    standard = scope.headers.get(STANDARD)
    if standard is None or not standard.metadata or "egress_spec" not in standard.type.by_name:
        raise UnsupportedProgramError(
            f"an architecture other than v1model (metadata {STANDARD!r} has no 'egress_spec')"
        )


def join_intrinsic_metadata(scope: Scope) -> None:
    """Make fields of ``intrinsic_metadata`` and ``queueing_metadata`` those of standard_metadata.

    simple_switch knows a field by either name. One that both have stays in both.
    """
    standard = scope.headers[STANDARD]
    fields = list(standard.type.fields)
    for name in _BESIDE:
        beside = scope.headers.get(name)
        if beside is None or not beside.metadata:
            continue
        for field in beside.type.fields:
            if field.name not in standard.type.by_name and field.name not in scope.joined:
                offset_bits = sum(each.width_bits for each in fields)
                fields.append(Field(field.name, field.width_bits, field.signed, offset_bits))
                scope.joined[field.name] = name
    if not scope.joined:
        return
    header_type = replace(standard.type, fields=tuple(fields))
    scope.types[header_type.name] = header_type
    scope.headers[STANDARD] = replace(standard, type=header_type)
