"""Programs whose packets take further turns: clones, resubmission, recirculation; digests.

One packet that came in is a queue of turns, as in simple_switch: each parses and runs ingress, or
runs egress, and may put others behind it.
"""

from __future__ import annotations

from ina.switch.emit.arrival import parse_any
from ina.switch.emit.code import Code
from ina.switch.emit.layout import Layout
from ina.switch.emit.standard import forget_metadata, set_standard
from ina.switch.emit.writer import Writer
from ina.switch.emit_c.packet_path import (
    choose_replicas,
    forget,
    send_copies,
)
from ina.switch.ir.expr import FieldRef
from ina.switch.ir.turns import (
    CLONE,
    CLONE_LIST,
    DIGEST,
    NOTES,
    RECIRCULATE,
    RESUBMIT,
    Digest,
)
from ina.switch.passes.tables import words_of

_PARAMETERS = "state *const S, const ina_packet_in *const in"
_TURN = "turn *const at, uint32_t *const count"


def emit_turn_types(layout: Layout, out: Writer) -> None:
    """``turn``, which the state has an array of."""
    if not layout.program.turns:
        return
    with out.block("typedef struct", tail="} turn;"):
        out.line("packet storage;")
        out.line("packet_arrays arrays;")
        out.line("ina_replica single;")
        out.line("const ina_replica *replicas; // NULL: it is parsed and goes through ingress")
        out.line("uint32_t copies;")
    out.line()


def record_words(layout: Layout) -> int:
    """Of a digest: its number, and the longest one's values."""
    digests = layout.program.turns.digests
    return 1 + max((_words(digest) for digest in digests), default=0)


def emit_turns(to: Code) -> str:
    """``process_one``; returns C for the most copies of one packet that there must be room for."""
    layout, out = to.layout, to.out
    _emit_queue(layout, out)
    if layout.program.turns.notes & {CLONE, RESUBMIT, RECIRCULATE}:
        _emit_renew(layout, out)
    if CLONE in layout.program.turns.notes:
        _emit_parse_again(layout, out)
    _emit_ingress(layout, out)
    _emit_egress(layout, out)
    out_parameter = "ina_output *const out"
    with out.block(f"static void process_one({_PARAMETERS}, {out_parameter})"):
        out.line("uint32_t count = 0;")
        out.line("packet *const p = &next_turn(S, &count)->storage;")
        out.line("forget_all(p, in->data, (uint32_t)ina_length(in));")
        set_standard(layout, out, "ingress_port", "in->port")
        set_standard(layout, out, "packet_length", "p->length")
        set_standard(layout, out, "ingress_global_timestamp", "in->now_ns / 1000")
        with out.block("for (uint32_t i = 0; i < count; i++)"):
            out.line("if (S->turns[i].replicas) egress_turn(S, in, S->turns + i, &count, out);")
            out.line("else ingress_turn(S, in, S->turns + i, &count);")
    out.line()
    return "INA_ROOM_TURNS * (S->most_replicas + S->clones.most_replicas)"


def _note(layout: Layout, name: str) -> str:
    bits = layout.program.headers[NOTES].type.by_name[name].width_bits
    return layout.field(FieldRef(NOTES, name, bits), late=False)


def _emit_queue(layout: Layout, out: Writer) -> None:
    out.lines.extend(_QUEUE.strip("\n").split("\n"))
    out.line()
    with out.block("static void forget_all(packet *const p, const uint8_t *data, uint32_t length)"):
        forget(layout, out, "data", "length")
    out.line()


def _emit_renew(layout: Layout, out: Writer) -> None:
    """``renew``: of the metadata only those of a list, and what kind of packet it is."""
    parameters = "packet *const p, const packet *const from, uint32_t list, uint32_t instance"
    with out.block(f"static void renew({parameters})"):
        out.line("(void)from;")
        out.line("(void)instance;")
        forget_metadata(layout, out)
        with out.block("switch (list)"):
            for number, refs in layout.program.turns.field_lists.items():
                out.line(f"case {number}:")
                for ref in refs:
                    if ref.field in layout.type_of(ref.header).members:
                        member = layout.field(ref, late=False)
                        out.line(f"    {member} = {member.replace('p->', 'from->', 1)};")
                out.line("    break;")
            out.line("default: break;")
        set_standard(layout, out, "packet_length", "p->length")
        set_standard(layout, out, "instance_type", "instance")
    out.line()


def _emit_parse_again(layout: Layout, out: Writer) -> None:
    """``parse_again``: as the packet came, but for who asked for it."""
    with out.block("static void parse_again(packet *const p, const ina_packet_in *const in)"):
        out.line("(void)in;")
        set_standard(layout, out, "ingress_port", "in->port")
        parse_any(layout, out)
    out.line()


def _emit_ingress(layout: Layout, out: Writer) -> None:
    notes = layout.program.turns.notes
    with out.block(f"static void ingress_turn({_PARAMETERS}, {_TURN})"):
        out.line("packet *const p = &at->storage;")
        out.line("(void)in;")
        parse_any(layout, out)
        out.line("ingress(S, p);")
        if CLONE in notes:
            with out.block(f"if ({_note(layout, CLONE)})"):
                _find_session(layout, out)
                out.line("turn *const next = session->count ? next_turn(S, count) : NULL;")
                with out.block("if (next)"):
                    out.line("forget_all(&next->storage, p->data, p->length);")
                    out.line("parse_again(&next->storage, in);")
                    _make_clone(out, "INA_INSTANCE_INGRESS_CLONE")
        for number, digest in enumerate(layout.program.turns.digests):
            _put_digest(layout, out, number, digest)
        if RESUBMIT in notes:
            with out.block(f"if ({_note(layout, RESUBMIT)})"):
                out.line("turn *const next = next_turn(S, count);")
                out.line("if (!next) return;")
                out.line("forget_all(&next->storage, p->data, p->length);")
                kind = "INA_INSTANCE_RESUBMITTED"
                out.line(f"renew(&next->storage, p, {_note(layout, RESUBMIT)}, {kind});")
                out.line("return;")
        choose_replicas(layout, out, "return;")
        out.line("turn *const next = copies ? same_turn(S, at, count) : NULL;")
        out.line("if (!next) return;")
        out.line("next->single = single;")
        out.line("next->replicas = replicas == &single ? &next->single : replicas;")
        out.line("next->copies = copies;")
        c_name = layout.metadata[NOTES].c_name
        notes_of_next = layout.header(NOTES).replace("p->", "next->storage.", 1)
        out.line(f"if (replicas != &single) {notes_of_next} = ({c_name}){{0}};")
    out.line()


def _find_session(layout: Layout, out: Writer) -> None:
    """``session`` and ``list`` of the clone that is asked for, which it is no more."""
    clone = _note(layout, CLONE)
    out.line(f"const ina_clone *const session = S->clones.sessions + {clone} % INA_SESSIONS;")
    out.line(f"const uint32_t list = {_note(layout, CLONE_LIST)};")
    out.line(f"{clone} = 0;")


def _make_clone(out: Writer, instance: str) -> None:
    out.line(f"renew(&next->storage, p, list, {instance});")
    out.line("next->replicas = session->replicas;")
    out.line("next->copies = session->count;")
    out.line("uint32_t *const most = &next->storage.truncate;")
    out.line("if (session->most_bytes && session->most_bytes < *most) *most = session->most_bytes;")


def _emit_egress(layout: Layout, out: Writer) -> None:
    notes = layout.program.turns.notes

    def on_egress() -> None:
        if RECIRCULATE in notes:
            out.line(f"const uint32_t again = {_note(layout, RECIRCULATE)};")
            out.line(f"{_note(layout, RECIRCULATE)} = 0;")
        if CLONE in notes:
            with out.block(f"if ({_note(layout, CLONE)})"):
                _find_session(layout, out)
                out.line("turn *const next = session->count ? same_turn(S, at, count) : NULL;")
                with out.block("if (next)"):
                    _make_clone(out, "INA_INSTANCE_EGRESS_CLONE")
        # Room for the first turns is certain; what comes when it is used up is lost, as in a queue.
        out.line("const size_t left = (size_t)(out->arena + out->arena_bytes - to);")
        full = "sent == out->packets + out->capacity || left < p->length + INA_MOST_HEADER_BYTES"
        out.line(f"if ({full}) continue;")

    def on_deparsed() -> None:
        if RECIRCULATE in notes:
            with out.block("if (again)"):
                out.line("turn *const next = next_turn(S, count);")
                out.line("if (!next) continue;")
                out.line("forget_all(&next->storage, to, length);")
                out.line("renew(&next->storage, p, again, INA_INSTANCE_RECIRCULATED);")
                out.line("to += length;")
                out.line("continue;")

    with out.block(f"static void egress_turn({_PARAMETERS}, {_TURN}, ina_output *const out)"):
        out.line("(void)in;")
        out.line("packet *const p = &at->storage;")
        out.line("const ina_replica *const replicas = at->replicas;")
        out.line("const uint32_t copies = at->copies;")
        out.line("(void)count;")
        send_copies(layout, out, None, on_egress, on_deparsed)
    out.line()


def _words(digest: Digest) -> int:
    return sum(words_of(ref.width_bits) for ref in digest.fields)


def _put_digest(layout: Layout, out: Writer, number: int, digest: Digest) -> None:
    with out.block(f"if ({_note(layout, DIGEST)} == {digest.id})"):
        out.line(f"// digest {digest.name}")
        out.line("uint64_t *const words = ina_digest_put(&S->digests);")
        with out.block("if (words)"):
            out.line(f"words[0] = {number};")
            at = 1
            for ref in digest.fields:
                value = layout.field(ref, late=False)
                for word in range(words_of(ref.width_bits)):
                    shift = f" >> {64 * word}" if word else ""
                    out.line(f"words[{at}] = (uint64_t)({value}{shift});")
                    at += 1


_QUEUE = """
/* The next one in the queue, to be parsed; NULL: it is full, and what would come is lost. */
static turn *next_turn(state *const S, uint32_t *const count) {
    if (*count == INA_MOST_TURNS) return NULL;
    turn *const next = S->turns + (*count)++;
    next->storage.arrays = &next->arrays;
    next->replicas = NULL;
    return next;
}

/* The same of a packet as it now is. */
static inline turn *same_turn(state *const S, const turn *const at, uint32_t *const count) {
    turn *const next = next_turn(S, count);
    if (!next) return NULL;
    *next = *at;
    next->storage.arrays = &next->arrays;
    return next;
}
"""
