"""Tables and pipelines."""

from __future__ import annotations

from ina.switch.errors import InvalidProgramError
from ina.switch.ir.expr import Binary, Const, Expr, FieldRef, Unary, Valid
from ina.switch.ir.json_access import (
    Json,
    get_int,
    get_list,
    get_objects,
    get_source,
    get_str,
    parse_hex,
)
from ina.switch.ir.load_expr import ExpressionLoader
from ina.switch.ir.program import Action, ActionCall, ConstEntry, Key, KeyValue, MatchKind, Table
from ina.switch.ir.scope import Scope
from ina.switch.ir.stmt import Block
from ina.switch.ir.structure import FlowNode, build_pipeline

_KINDS = {kind.value: kind for kind in MatchKind}
_NOTHING = -1
"""The id of an action that BMv2's numbers leave free."""


class ControlLoader:
    """Loads the tables of both pipelines and the pipelines themselves."""

    def __init__(self, scope: Scope, actions: dict[int, Action], direct: dict[str, str]) -> None:
        self._scope = scope
        self._actions = actions  # by BMv2 id
        self._direct = direct  # table name -> direct counter
        self.tables: list[Table] = []
        self.folded: list[Table] = []

    def pipeline(self, node: Json) -> Block:
        """One pipeline; its tables are added to :attr:`tables` or :attr:`folded`."""
        for profile in get_objects(node, "action_profiles"):
            self._scope.source = get_source(profile)
            kind = "selectors" if profile.get("selector") else "profiles"
            raise self._scope.refuse(f"action {kind} ({profile.get('name')!r})")
        nodes = {}
        for table in get_objects(node, "tables"):
            nodes[get_str(table, "name")] = self._table_node(table)
        for conditional in get_objects(node, "conditionals"):
            source = get_source(conditional)
            self._scope.source = source
            condition = ExpressionLoader(self._scope).boolean(conditional["expression"])
            branches: dict[str | int, str | None] = {
                "true": conditional.get("true_next"),
                "false": conditional.get("false_next"),
            }
            name = get_str(conditional, "name")
            nodes[name] = FlowNode(name, condition=condition, next=branches, source=source)
        for call in get_objects(node, "action_calls"):
            name = get_str(call, "name")
            body = self._action(get_int(call, "action_id")).body
            nodes[name] = FlowNode(name, body=body, next={"next": call.get("next_node")})
        return build_pipeline(nodes, node.get("init_table"))

    def _action(self, bmv2_id: int) -> Action:
        try:
            return self._actions[bmv2_id]
        except KeyError:
            raise InvalidProgramError(f"BMv2 JSON: no action with id {bmv2_id}") from None

    def _actions_of(self, table: Json) -> tuple[Action, ...]:
        """By id; BMv2's JSON before version 2 has names only."""
        if "action_ids" in table:
            return tuple(self._action(number) for number in get_list(table, "action_ids"))
        by_name = {action.name: action for action in self._actions.values()}
        names = [str(name) for name in get_list(table, "actions")]
        missing = [name for name in names if name not in by_name]
        if missing:
            raise InvalidProgramError(f"BMv2 JSON: no action {missing[0]!r}")
        return tuple(by_name[name] for name in names)

    def _table_node(self, node: Json) -> FlowNode:
        name, source = get_str(node, "name"), get_source(node)
        self._scope.source = source
        if node.get("type", "simple") != "simple":
            raise self._scope.refuse(f"table {name!r} with an action profile or selector")
        if node.get("support_timeout"):
            raise self._scope.refuse(f"table {name!r} with idle timeouts")
        if node.get("direct_meters"):
            raise self._scope.refuse(f"table {name!r} with a direct meter")
        actions = self._actions_of(node)
        nexts = node.get("next_tables") or {}
        default = self._default(node, name)
        action = next(
            a for a in actions + tuple(self._actions.values()) if a.index == default.action
        )
        constant = bool((node.get("default_entry") or {}).get("action_entry_const"))
        keys = tuple(self._key(key) for key in get_objects(node, "key"))
        table = Table(
            name=name,
            index=len(self.tables),
            kind=_KINDS[get_str(node, "match_type")],
            keys=keys,
            actions=actions,
            default=default,
            default_is_const=constant,
            max_size=max(1, get_int(node, "max_size")),
            has_direct_counter=bool(node.get("with_counters")),
            entries=self._entries(node, keys),
            is_const="entries" in node,  # an empty list, too: nothing else may be in it
            direct_counter=self._direct.get(name, ""),
            source=source,
        )
        if len(table.entries) > table.max_size:
            raise InvalidProgramError(f"table {name!r} has more constant entries than room")
        if not keys and constant and not table.has_direct_counter and not action.params:
            # Not to be looked up: the action runs in place. p4c wraps plain statements so, too.
            self.folded.append(table)
            after = nexts.get("__MISS__") if "__MISS__" in nexts else nexts.get(action.name)
            return FlowNode(name, body=action.body, next={"next": after}, source=source)
        self.tables.append(table)
        ways: dict[str | int, str | None] = {}
        if "__HIT__" in nexts or "__MISS__" in nexts:
            ways = {"hit": nexts.get("__HIT__"), "miss": nexts.get("__MISS__")}
        else:
            ways = {a.index: nexts.get(a.name) for a in actions}
            ways.setdefault(action.index, node.get("base_default_next"))
        return FlowNode(name, table=name, next=ways, source=source)

    def _default(self, node: Json, name: str) -> ActionCall:
        entry = node.get("default_entry")
        if not isinstance(entry, dict):  # as of P4_14 programs: a miss does nothing
            return ActionCall(self._nothing().index, ())
        return self._call(entry, f"the default action of {name!r}")

    def _nothing(self) -> Action:
        """An action of no table's: one for the whole program."""
        found = self._actions.get(_NOTHING)
        if found is None:
            found = self._actions[_NOTHING] = Action("NoAction", len(self._actions), (), ())
        return found

    def _call(self, node: Json, what: str) -> ActionCall:
        action = self._action(get_int(node, "action_id"))
        args = tuple(parse_hex(arg) for arg in get_list(node, "action_data"))
        if len(args) != len(action.params):
            wanted = f"{len(args)} arguments, not {len(action.params)}"
            raise InvalidProgramError(f"BMv2 JSON: {what} has {wanted}")
        return ActionCall(action.index, args)

    def _key(self, node: Json) -> Key:
        kind = get_str(node, "match_type")
        if kind == "valid":  # of P4_14: the target is a header
            header = self._scope.on_the_wire(get_str(node, "target"))
            said = str(node.get("name") or header.name)
            return Key(said, 1, MatchKind.EXACT, Unary("b2d", Valid(header.name)))
        if kind not in _KINDS:
            raise self._scope.refuse(f"match kind {kind!r}")
        if isinstance(node.get("target"), dict):  # p4c computes all else before
            raise self._scope.refuse("a table key in a stack's element chosen at run time")
        target = ExpressionLoader(self._scope).integer(
            {"type": "field", "value": node.get("target")}
        )
        width = 1 if isinstance(target, Unary) else getattr(target, "width_bits", 0)
        if not isinstance(target, (FieldRef, Unary)):
            raise self._scope.refuse("a table key that is not a field")
        value: Expr = target
        if node.get("mask") is not None:
            value = Binary("&", target, Const(parse_hex(node["mask"])))
        if kind == "range" and width > 64:
            raise self._scope.refuse("a range match wider than 64 bits")
        name = node.get("name")
        if not isinstance(name, str):
            name = ".".join(str(part) for part in get_list(node, "target"))
        return Key(name, width, _KINDS[kind], value)

    def _entries(self, node: Json, keys: tuple[Key, ...]) -> tuple[ConstEntry, ...]:
        items = get_objects(node, "entries")
        lowest = max((int(item.get("priority", 0)) for item in items), default=0)
        return tuple(self._entry(item, keys, lowest) for item in items)

    def _entry(self, item: Json, keys: tuple[Key, ...], lowest: int) -> ConstEntry:
        """BMv2's smallest priority wins; here the largest does."""
        values = []
        priority = lowest - int(item.get("priority", 0)) + 1
        has_lpm_only = all(key.kind in (MatchKind.EXACT, MatchKind.LPM) for key in keys)
        parts = get_objects(item, "match_key")
        if len(parts) != len(keys):
            raise InvalidProgramError("BMv2 JSON: a constant entry lacks key fields")
        for key, part in zip(keys, parts, strict=True):
            full = (1 << key.width_bits) - 1
            kind = get_str(part, "match_type")
            if kind == "range":
                values.append(KeyValue(parse_hex(part["start"]), parse_hex(part["end"])))
            elif kind == "lpm":
                prefix = get_int(part, "prefix_length")
                mask = full ^ (full >> prefix)
                values.append(KeyValue(parse_hex(part["key"]) & mask, mask))
                if has_lpm_only:
                    priority = prefix
            elif kind == "ternary":
                mask = parse_hex(part["mask"]) & full
                values.append(KeyValue(parse_hex(part["key"]) & mask, mask))
            elif kind == "exact":
                values.append(KeyValue(parse_hex(part["key"]), full))
            else:
                raise self._scope.refuse(f"match kind {kind!r} in an entry")
        call = item.get("action_entry")
        if not isinstance(call, dict):
            raise InvalidProgramError("BMv2 JSON: a constant entry without an action")
        return ConstEntry(tuple(values), self._call(call, "a constant entry"), priority)
