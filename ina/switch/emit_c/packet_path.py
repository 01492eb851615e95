"""The way of one packet: parse, ingress, replicate, egress, deparse."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ina.switch.emit.arrival import parse_any, parse_main, unpack_late
from ina.switch.emit.checksums import emit_wire_sums
from ina.switch.emit.code import Code
from ina.switch.emit.crcs import forget_crcs
from ina.switch.emit.layout import Layout
from ina.switch.emit.standard import forget_headers, set_standard
from ina.switch.emit.where import GENERAL, ON_MAIN
from ina.switch.emit.writer import Writer
from ina.switch.emit_c.tables import read_fixed
from ina.switch.passes.plan import MainPath


def emit_process(to: Code, most_header_bytes: int, emit_one: Callable[[Code], str]) -> None:
    """``process_one`` and the batch entry point.

    ``emit_one`` prints the former; what it returns is C for the most copies of one packet.
    """
    layout, out = to.layout, to.out
    main = layout.plan.main
    out.line(f"#define INA_MOST_HEADER_BYTES {most_header_bytes}")
    out.line()
    most_copies = emit_one(to.at(GENERAL))
    if main is not None:
        _packet_function(to.at(ON_MAIN), main)
    with out.block(
        "static size_t process(void *const opaque, const ina_packet_in *const in, "
        "const size_t count,\n"
        "                      ina_output *const out)"
    ):
        out.line("state *const S = opaque;")
        out.line("const ina_packet_in *at = in;")
        out.line("const ina_packet_in *const end = in + count;")
        out.line("pthread_mutex_lock(&S->mutex);")
        out.line("const ina_packet_in *const fetched =")
        out.line("    count > INA_PREFETCH ? end - INA_PREFETCH : in; // the last of them")
        out.line("size_t room = 0; // packets shorter than this fit")
        with out.block("for (; at != end; at++)"):
            out.line("const size_t length = ina_length(at);")
            with out.block("if (INA_UNLIKELY(length >= room))"):
                out.line(f"room = ina_room(out, {most_copies}, INA_MOST_HEADER_BYTES);")
                out.line("if (length >= room) break;")
            first, last = layout.plan.first_bytes
            fetch = f"ina_prefetch(at[INA_PREFETCH].data, {first}, {last})"
            out.line(f"if (INA_LIKELY(at < fetched)) {fetch};")
            if main is not None:
                out.line(f"const bool fits = {_is_for_main(main)};")
                out.line("if (INA_LIKELY(fits) && process_main(S, at, out, &room)) continue;")
            out.line("ina_packet_in storage;")
            out.line("const ina_packet_in *const one = ina_gather(at, &storage, S->gathered);")
            out.line("if (one) process_one(S, one, out);")
            out.line("room = 0;")
        out.line("pthread_mutex_unlock(&S->mutex);")
        out.line("return (size_t)(at - in);")
    out.line()


def _is_for_main(main: MainPath) -> str:
    """Whether the main path can read the frame's parts where they are."""
    if main.tail_header is None:
        return "!at->tail"
    split, size = main.headers_bytes, main.size_bytes
    return f"!at->tail || (at->length == {split} && length == {size})"


def emit_once(to: Code) -> str:
    """``process_one`` of programs in which a packet goes through the pipelines once."""
    _packet_function(to, None)
    return "S->most_replicas"


def _packet_function(to: Code, main: MainPath | None) -> None:
    """``process_one`` for any packet; ``process_main`` returns false, with nothing done, off the
    main path."""
    layout, out = to.layout, to.out
    general = "INA_APART void" if layout.plan.main is not None else "INA_INLINE void"
    head = "INA_INLINE bool process_main" if main else f"{general} process_one"
    parameters = "state *const S, const ina_packet_in *const in, ina_output *const out"
    if main:
        parameters += ", size_t *const room"
    with out.block(f"{head}({parameters})"):
        _arrive(layout, out)
        early = _parse_main(to, main) if main else parse_any(layout, out)
        out.line(f"ingress_main(S, p{early});" if main else "ingress(S, p);")
        choose_replicas(layout, out, "return true;" if main else "return;")
        if main:
            unpack_late(layout, out, main)
        send_copies(layout, out, main)
        if main:
            out.line("*room = 0;")
            out.line("return true;")
    out.line()


def send_copies(
    layout: Layout,
    out: Writer,
    main: MainPath | None,
    on_egress: Callable[[], None] = lambda: None,
    on_deparsed: Callable[[], None] = lambda: None,
) -> None:
    """Egress and the deparser for each of ``copies``.

    ``on_egress`` prints what is done when a copy has passed egress, ``on_deparsed`` what is done
    with its ``length`` bytes at ``to`` before they are sent.
    """
    sums = emit_wire_sums(layout, out)
    fixed = read_fixed(layout, out)
    saved = _saved(layout)
    arrays = [each for each in saved if each.is_array]
    for each in saved:
        each.save(out)
    if main:
        forget_crcs(layout, out)
        least = " >= INA_TRAILERS" if main.has_trailer else ""
        wanted = f"out->share_tails{least} && copies > 1"
        out.line(f"ina_tail shared = {{NULL, 0, {wanted}, false, 0}};")
    # What the copies go on from: bytes that are stored cannot change these, as those of *out.
    out.line("ina_packet_out *sent = out->packets + out->count;")
    out.line("uint8_t *to = out->arena + out->arena_used;")
    out.line("uint32_t *const depth_pkts = out->depth_pkts;")
    with out.block("for (uint32_t i = 0; i < copies; i++)"):
        # Scalars even before the first copy: so nothing is carried from one copy to the next.
        for each in saved:
            if not each.is_array:
                each.restore(out)
        if arrays:
            with out.block("if (i > 0)"):
                for each in arrays:
                    each.restore(out)
        _send(layout, out, sums, fixed, main, on_egress, on_deparsed)
    out.line("out->arena_used = (size_t)(to - out->arena);")
    out.line("out->count = (size_t)(sent - out->packets);")


def _arrive(layout: Layout, out: Writer) -> None:
    """A packet of which nothing is known but its bytes and when and where it came."""
    out.line("packet storage;")
    out.line("packet_arrays arrays;")
    out.line("packet *const p = &storage;")
    out.line("p->arrays = &arrays;")
    forget(layout, out, "in->data", "(uint32_t)ina_length(in)")
    set_standard(layout, out, "ingress_port", "in->port")
    set_standard(layout, out, "packet_length", "p->length")
    set_standard(layout, out, "ingress_global_timestamp", "in->now_ns / 1000")


def forget(layout: Layout, out: Writer, data: str, length: str) -> None:
    """``p`` is a packet of these bytes of which nothing else is known."""
    out.line(f"p->data = {data};")
    out.line(f"p->length = {length};")
    out.line("p->truncate = UINT32_MAX;")
    if layout.plan.counts_length:
        out.line("p->told_length = p->length;")
    forget_headers(layout, out)


def _parse_main(to: Code, main: MainPath) -> str:
    def on_parsed() -> None:
        if main.tail_header is not None:
            to.out.line(f"if (in->tail) {to.layout.place(main.tail_header)} = in->tail;")

    return parse_main(to, main, on_parsed)


def choose_replicas(layout: Layout, out: Writer, leave: str) -> None:
    """``replicas`` and ``copies``, or ``single``; ``leave`` is what is done if there are none."""
    out.line("ina_replica single;")
    out.line("const ina_replica *replicas = &single;")
    out.line("uint32_t copies = 1;")
    group, spec = layout.standard("mcast_grp"), layout.standard("egress_spec")
    if group is not None:
        with out.block(f"if ({group})"):
            out.line(f"replicas = S->groups[{group} & (INA_GROUPS - 1)].replicas;")
            out.line(f"copies = S->groups[{group} & (INA_GROUPS - 1)].count;")
            set_standard(layout, out, "instance_type", "INA_INSTANCE_REPLICATION")
    with out.block("else" if group is not None else ""):
        out.line(f"if ({spec} == INA_DROP_PORT) {leave}")
        out.line(f"single.egress_port = {spec};")
        rid = layout.standard("egress_rid")
        out.line(f"single.rid = {rid or 0};")
        set_standard(layout, out, "instance_type", "INA_INSTANCE_NORMAL")


@dataclass(frozen=True)
class _Saved:
    """Something that each copy of a packet finds as ingress left it."""

    path: str
    is_array: bool
    """Whether it is indexed, so that it lies in memory: then only egress itself can change it."""
    name: str

    def save(self, out: Writer) -> None:
        if self.is_array:
            out.line(f"__typeof__({self.path}) {self.name};")
            out.line(f"memcpy(&{self.name}, &{self.path}, sizeof {self.name});")
        else:
            out.line(f"const __typeof__({self.path}) {self.name} = {self.path};")

    def restore(self, out: Writer) -> None:
        if self.is_array:
            out.line(f"memcpy(&{self.path}, &{self.name}, sizeof {self.name});")
        else:
            out.line(f"{self.path} = {self.name};")


def _saved(layout: Layout) -> list[_Saved]:
    changed = layout.plan.changed_by_egress
    found = [("p->truncate", False)] if changed.length else []
    found += [("p->told_length", False)] if layout.plan.counts_length else []
    found += [(layout.field(ref, late=False), False) for ref in changed.fields]
    found += [(layout.valid(name), False) for name in changed.validity]
    for name in changed.whole:
        if name in layout.program.stacks:
            found += [(layout.stack(name) + suffix, True) for suffix in ("", "_valid", "_next")]
        else:
            found.append((layout.header(name), name in layout.plan.apart))
            if not layout.program.headers[name].metadata:
                found += [(layout.valid(name), False), (layout.place(name), False)]
    return [_Saved(*each, f"saved_{number}") for number, each in enumerate(found)]


def _send(
    layout: Layout,
    out: Writer,
    sums: str,
    fixed: str,
    main: MainPath | None,
    on_egress: Callable[[], None],
    on_deparsed: Callable[[], None],
) -> None:
    out.line("const uint32_t port = replicas[i].egress_port & (INA_MAX_PORTS - 1);")
    set_standard(layout, out, "egress_port", "port")
    set_standard(layout, out, "egress_rid", "replicas[i].rid")
    length = "p->told_length" if layout.plan.counts_length else "p->length"
    set_standard(layout, out, "packet_length", length)
    set_standard(layout, out, "enq_timestamp", "in->now_ns / 1000")
    set_standard(layout, out, "enq_qdepth", "depth_pkts[port]")
    set_standard(layout, out, "deq_qdepth", "depth_pkts[port]")
    set_standard(layout, out, "deq_timedelta", "0")
    set_standard(layout, out, "egress_global_timestamp", "in->now_ns / 1000")
    spec = layout.standard("egress_spec")
    out.line(f"{spec} = 0;")
    egress = "egress_main" if main and main.hashes_late_arrays else "egress"
    out.line(f"{egress}(S, p{fixed});")
    on_egress()
    out.line(f"if ({spec} == INA_DROP_PORT) continue;")
    out.line(f"update_checksums(p{sums});")
    call = "deparse_main(p, to, &shared)" if main else "deparse(p, to)"
    out.line(f"const uint32_t length = {call};")
    on_deparsed()
    tail = "NULL, 0, 0"
    if main:
        trailer = "shared.used ? shared.trailer_length : 0" if main.has_trailer else "0"
        lengths = f"shared.used ? shared.length : 0, {trailer}"
        tail = f"shared.used ? shared.data : NULL, {lengths}"
    out.line(f"*sent++ = (ina_packet_out){{to, length, port, {tail}}};")
    out.line("to += length;")
    out.line("depth_pkts[port]++;")
