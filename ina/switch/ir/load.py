"""BMv2 JSON (p4c-bm2-ss's output) to a typed :class:`~ina.switch.ir.program.Program`."""

from __future__ import annotations

import json
from pathlib import Path

from ina.switch.errors import InvalidProgramError, UnsupportedProgramError
from ina.switch.ir.architecture import (
    check_architecture,
    check_standard_metadata,
    join_intrinsic_metadata,
)
from ina.switch.ir.data import Counter, Field, Header, HeaderType, Register, Stack
from ina.switch.ir.expr import BoolConst, Const, FieldRef, Unary
from ina.switch.ir.json_access import (
    Json,
    get_dict,
    get_int,
    get_list,
    get_objects,
    get_source,
    get_str,
)
from ina.switch.ir.load_actions import StatementLoader
from ina.switch.ir.load_control import ControlLoader
from ina.switch.ir.load_expr import ExpressionLoader
from ina.switch.ir.load_parser import load_parser
from ina.switch.ir.places import place_of, place_of_field, place_of_union
from ina.switch.ir.program import Action, Checksum, Param, Program
from ina.switch.ir.scope import MAX_FIELD_BITS, Calculation, Scope
from ina.switch.ir.stmt import HashInput
from ina.switch.ir.turns import load_turns

_UNIONS = ("header_unions", "header_union_stacks")
_REFUSED = {
    "meter_arrays": "meters",
    "parse_vsets": "parser value sets",
    "extern_instances": "extern objects other than counters and registers",
}
MAX_REGISTER_BITS = 128


def read_json(source: bytes | str | Path) -> bytes:
    """The text of a program: bytes as they are, a path read, a string from ``{`` on as is."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, str) and source.lstrip().startswith("{"):
        return source.encode()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise InvalidProgramError(f"cannot read {source}: {error.strerror}") from error


def load_program(source: bytes | str | Path) -> Program:
    """Validate and type a program; raises InvalidProgramError or UnsupportedProgramError."""
    try:
        root = json.loads(read_json(source))
    except (ValueError, RecursionError) as error:
        raise InvalidProgramError(f"not JSON: {error}") from error
    root = get_dict(root, "the program")
    try:
        return _load(root)
    except (InvalidProgramError, UnsupportedProgramError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise InvalidProgramError(
            f"not the BMv2 JSON of a v1model program: {type(error).__name__} {error}"
        ) from error


def _load(root: Json) -> Program:
    if not root.get("pipelines") or "header_types" not in root:
        raise InvalidProgramError("not the BMv2 JSON of a v1model program: no pipelines")
    check_architecture(root)
    for key, construct in _REFUSED.items():
        for item in get_objects(root, key):
            place = str(get_source(item)) or str(place_of(root, [item.get("name")]))
            raise UnsupportedProgramError(f"{construct} ({item.get('name')!r})", place)
    _refuse_unions(root)
    scope = Scope()
    _load_data(root, scope)
    check_standard_metadata(scope)
    join_intrinsic_metadata(scope)
    direct = _load_counters(root, scope)
    for node in get_objects(root, "calculations"):
        _load_calculation(node, scope)
    turns = load_turns(root, scope)
    actions: dict[int, Action] = {}
    for number, node in enumerate(get_objects(root, "actions")):
        actions[get_int(node, "id")] = _load_action(node, number, scope)
    parsers = get_objects(root, "parsers")
    start, states = load_parser(parsers[0], scope) if parsers else (None, {})
    controls = ControlLoader(scope, actions, direct)
    pipelines = {get_str(node, "name"): node for node in get_objects(root, "pipelines")}
    ingress = controls.pipeline(pipelines["ingress"])
    egress = controls.pipeline(pipelines["egress"])
    deparsers = get_objects(root, "deparsers")
    order = tuple(scope.on_the_wire(name).name for name in get_list(deparsers[0], "order"))
    if get_list(deparsers[0], "primitives"):
        scope.source = get_source(deparsers[0])
        raise scope.refuse("statements in the deparser")
    for name in order:
        if scope.header(name).type.width_bits % 8:
            scope.source = place_of(root, [name, scope.header(name).stack])
            raise scope.refuse(f"header {name!r}, which is not a whole number of bytes")
    return Program(
        name=str(root.get("program", "")),
        headers=scope.headers,
        stacks=scope.stacks,
        registers=tuple(scope.registers.values()),
        counters=tuple(scope.counters.values()),
        actions=tuple(actions.values()),
        tables=tuple(controls.tables),
        folded=tuple(controls.folded),
        errors={str(name): int(code) for name, code in get_list(root, "errors")},
        start_state=start,
        states=states,
        ingress=ingress,
        egress=egress,
        checksums=tuple(_load_checksum(node, scope) for node in get_objects(root, "checksums")),
        deparse=order,
        turns=turns,
    )


def _refuse_unions(root: Json) -> None:
    """Of unions, stacks of them, and what p4c makes of some: a header of a union's type."""
    types = {node.get("name") for node in get_objects(root, "header_union_types")}
    found = [h for h in get_objects(root, "headers") if h.get("header_type") in types]
    found += [union for key in _UNIONS for union in get_objects(root, key)]
    for union in found:
        place = str(place_of_union(root, union))
        raise UnsupportedProgramError(f"header unions ({union.get('name')!r})", place)


def _load_data(root: Json, scope: Scope) -> None:
    used = {
        item.get("header_type")
        for key in ("headers", "header_stacks")
        for item in get_objects(root, key)
    }
    for node in get_objects(root, "header_types"):
        if get_str(node, "name") not in used:
            continue  # only declared
        header_type = _load_type(root, node)
        scope.types[header_type.name] = header_type
    by_id = {}
    for node in get_objects(root, "headers"):
        header = Header(
            get_str(node, "name"),
            scope.types[get_str(node, "header_type")],
            bool(node.get("metadata")),
        )
        scope.headers[header.name] = by_id[get_int(node, "id")] = header
    for node in get_objects(root, "header_stacks"):
        members = [by_id[number] for number in get_list(node, "header_ids")]
        stack = Stack(
            get_str(node, "name"),
            scope.types[get_str(node, "header_type")],
            tuple(member.name for member in members),
        )
        scope.stacks[stack.name] = stack
        for position, member in enumerate(members):
            scope.headers[member.name] = Header(
                member.name, member.type, False, stack.name, position
            )
    for number, node in enumerate(get_objects(root, "register_arrays")):
        scope.source = get_source(node)
        width = get_int(node, "bitwidth")
        if width > MAX_REGISTER_BITS:
            raise scope.refuse(f"a register of {width} bits (128 at most)")
        register = Register(get_str(node, "name"), number, get_int(node, "size"), width)
        scope.registers[register.name] = register


def _load_type(root: Json, node: Json) -> HeaderType:
    fields, offset = [], 0
    for item in get_list(node, "fields"):
        name, width = item[0], item[1]
        what = ""
        if not isinstance(width, int):
            what = f"field {name!r} of variable length (varbit) in {node['name']!r}"
        elif not 1 <= width <= MAX_FIELD_BITS:
            limit = f"(1 to {MAX_FIELD_BITS}) in {node['name']!r}"
            what = f"field {name!r} of {width} bits {limit}"
        if what:
            place = place_of_field(root, get_str(node, "name"), name)
            if place is None:
                continue  # only declared
            raise UnsupportedProgramError(what, str(place))
        fields.append(Field(name, width, len(item) > 2 and bool(item[2]), offset))
        offset += width
    return HeaderType(get_str(node, "name"), tuple(fields))


def _load_counters(root: Json, scope: Scope) -> dict[str, str]:
    """Indirect counters into the scope; direct ones by the name of their table."""
    direct = {}
    for node in get_objects(root, "counter_arrays"):
        name = get_str(node, "name")
        if node.get("is_direct"):
            direct[get_str(node, "binding")] = name
        else:
            number = len(scope.counters)
            scope.counters[name] = Counter(name, number, get_int(node, "size"))
    return direct


def _load_calculation(node: Json, scope: Scope) -> None:
    scope.source = get_source(node)
    inputs: list[HashInput] = []
    payload: tuple[HashInput, ...] = ()  # behind all else, wherever it is named, as in BMv2
    for item in get_objects(node, "input"):
        kind = get_str(item, "type")
        if kind == "payload":
            payload = (HashInput(Const(0), 0, payload=True),)
            continue
        if kind == "header":
            header = scope.header(get_str(item, "value"))
            owner = "" if header.metadata else header.name
            for field in header.type.fields:
                ref = FieldRef(header.name, field.name, field.width_bits, field.signed)
                inputs.append(HashInput(ref, field.width_bits, owner))
            continue
        value = ExpressionLoader(scope).integer(item)
        if kind == "hexstr":
            inputs.append(HashInput(value, get_int(item, "bitwidth")))
        elif isinstance(value, FieldRef):
            header = scope.header(value.header)
            owner = "" if header.metadata else header.name
            inputs.append(HashInput(value, value.width_bits, owner))
        elif isinstance(value, Unary) and value.op == "b2d":
            inputs.append(HashInput(value, 1))
        else:
            raise scope.refuse("a hash or checksum over this kind of value")
    calculation = Calculation(get_str(node, "algo"), (*inputs, *payload), get_source(node))
    scope.calculations[get_str(node, "name")] = calculation


def _load_action(node: Json, number: int, scope: Scope) -> Action:
    scope.source = get_source(node)
    params = []
    for param in get_objects(node, "runtime_data"):
        width = get_int(param, "bitwidth")
        if not 1 <= width <= MAX_FIELD_BITS:
            raise scope.refuse(f"action parameter {param.get('name')!r} of {width} bits")
        params.append(Param(get_str(param, "name"), width))
    loader = StatementLoader(scope, tuple(param.width_bits for param in params))
    body = loader.body(get_objects(node, "primitives"))
    return Action(get_str(node, "name"), number, tuple(params), body, get_source(node))


def _load_checksum(node: Json, scope: Scope) -> Checksum:
    scope.source = get_source(node)
    calculation = scope.calculation(get_str(node, "calculation"))
    if calculation.algorithm != "csum16":
        raise scope.refuse(f"a checksum with algorithm {calculation.algorithm!r}")
    target = ExpressionLoader(scope).target({"type": "field", "value": node.get("target")})
    if not isinstance(target, FieldRef):
        raise scope.refuse("a checksum into this target")
    raw = node.get("if_cond")
    condition = ExpressionLoader(scope).boolean(raw) if raw is not None else None
    if condition == BoolConst(True):
        condition = None
    return Checksum(
        target=target,
        inputs=calculation.inputs,
        condition=condition,
        verify=bool(node.get("verify", True)),
        update=bool(node.get("update", True)),
        source=get_source(node),
    )
