"""What sends a packet on another turn: clones, resubmission and recirculation; and digests.

As in simple_switch a statement only notes what is to be done, in registers of the packet; the last
note counts, and it is acted on when the pipeline is over. Here the registers are fields of metadata
of this module's own, so to every pass such a statement is an assignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ina.switch.ir.data import Field, Header, HeaderType
from ina.switch.ir.expr import Binary, Const, Expr, FieldRef
from ina.switch.ir.json_access import Json, get_int, get_list, get_objects, get_str
from ina.switch.ir.scope import Scope
from ina.switch.ir.source import Source
from ina.switch.ir.stmt import Assign, Block

NOTES = "$notes"
"""The metadata with the registers. No name of P4 begins so."""
SESSION_BITS = 15
CLONE, CLONE_LIST, RESUBMIT, RECIRCULATE, DIGEST = (
    "clone", "clone_list", "resubmit", "recirculate", "digest",
)  # fmt: skip
"""0: nothing is asked for. ``clone`` is a session with bit 15 set; the others are a field list's or
a digest's id."""
_NOTE_BITS = 16
TURNS = {
    "clone_ingress_pkt_to_egress": CLONE,
    "clone_egress_pkt_to_egress": CLONE,
    "resubmit": RESUBMIT,
    "recirculate": RECIRCULATE,
}
"""Primitives, and the register that each sets."""
GENERATE_DIGEST = "generate_digest"


@dataclass(frozen=True)
class Digest:
    """What a digest tells the controller; ``fields`` are those of NOTES that hold the values."""

    name: str
    id: int
    fields: tuple[FieldRef, ...]


@dataclass(frozen=True)
class Turns:
    """All of a program that is about further turns and digests."""

    notes: frozenset[str] = frozenset()
    """Registers that the program sets."""
    field_lists: Mapping[int, tuple[FieldRef, ...]] = field(default_factory=dict)
    """By id: metadata that the packet keeps on its next turn."""
    digests: tuple[Digest, ...] = ()

    def __bool__(self) -> bool:
        """Whether packets do anything but pass once."""
        return bool(self.notes)


NO_TURNS = Turns()


def load_turns(root: Json, scope: Scope) -> Turns:
    """Declares NOTES if the program has a use for it."""
    names = {
        get_str(op, "op")
        for action in get_objects(root, "actions")
        for op in get_objects(action, "primitives")
    }
    notes = {TURNS[name] for name in names if name in TURNS}
    if CLONE in notes:
        notes.add(CLONE_LIST)
    learned = get_objects(root, "learn_lists") if GENERATE_DIGEST in names else []
    if learned:
        notes.add(DIGEST)
    if not notes:
        return NO_TURNS
    widths = dict.fromkeys(sorted(notes), _NOTE_BITS)
    values = {get_int(node, "id"): _elements(node, scope) for node in learned}
    for number, refs in values.items():
        widths |= {_value(number, i): ref.width_bits for i, ref in enumerate(refs)}
    scope.headers[NOTES] = Header(NOTES, _header_type(widths), metadata=True)
    scope.learned = values
    digests = tuple(
        Digest(
            get_str(node, "name"),
            get_int(node, "id"),
            tuple(_note(scope, _value(get_int(node, "id"), i)) for i in range(len(refs))),
        )
        for node, refs in zip(learned, values.values(), strict=True)
    )
    return Turns(frozenset(notes), _field_lists(root, scope), digests)


def turn(name: str, args: list[Expr], scope: Scope, source: Source) -> Block:
    """The assignments of one of TURNS' primitives."""
    register = TURNS[name]
    if register != CLONE:
        return (Assign(_note(scope, register), args[0], source),)
    marked = Binary("|", args[0], Const(1 << SESSION_BITS))
    return (
        Assign(_note(scope, CLONE), Binary("&", marked, Const(0xFFFF)), source),
        Assign(_note(scope, CLONE_LIST), args[1], source),
    )


def digest(args: list[Expr], scope: Scope, source: Source) -> Block:
    """``generate_digest``: the values are those of now."""
    number = args[1].value if isinstance(args[1], Const) else 0
    refs = scope.learned.get(number)
    if refs is None:
        raise scope.refuse("a digest of a list that the program does not have")
    kept = [Assign(_note(scope, _value(number, i)), ref, source) for i, ref in enumerate(refs)]
    return (*kept, Assign(_note(scope, DIGEST), Const(number), source))


def _value(number: int, position: int) -> str:
    return f"digest_{number}_{position}"


def _note(scope: Scope, name: str) -> FieldRef:
    return FieldRef(NOTES, name, scope.field(NOTES, name).width_bits)


def _header_type(widths: Mapping[str, int]) -> HeaderType:
    fields, offset_bits = [], 0
    for name, width_bits in widths.items():
        fields.append(Field(name, width_bits, False, offset_bits))
        offset_bits += width_bits
    return HeaderType(NOTES, tuple(fields))


def _field_lists(root: Json, scope: Scope) -> dict[int, tuple[FieldRef, ...]]:
    lists = {}
    for node in get_objects(root, "field_lists"):
        refs = _elements(node, scope)
        for ref in refs:
            if not scope.header(ref.header).metadata:
                raise scope.refuse(f"a list of fields to keep with one of header {ref.header!r}")
        lists[get_int(node, "id")] = refs
    return lists


def _elements(node: Json, scope: Scope) -> tuple[FieldRef, ...]:
    """The fields among a list's elements; constants, which P4_14 may have there, say nothing."""
    found = []
    for element in get_objects(node, "elements"):
        if element.get("type") != "field":
            continue
        header, name = (str(part) for part in get_list(element, "value"))
        header = scope.home(header, name)
        of = scope.field(header, name)
        found.append(FieldRef(header, name, of.width_bits, of.signed))
    return tuple(found)
