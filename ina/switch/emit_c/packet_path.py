"""The way of one packet: parse, ingress, replicate, egress, deparse."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ina.switch.emit_c.deparser import emit_wire_sums
from ina.switch.emit_c.expressions import Expressions
from ina.switch.emit_c.layout import Layout
from ina.switch.emit_c.tables import TableEmitter
from ina.switch.emit_c.writer import Writer
from ina.switch.ir.expr import ArrayFieldRef, FieldRef, StackFieldRef
from ina.switch.ir.stmt import CopyHeader, CopyStack, SetValid, ShiftStack, Truncate
from ina.switch.ir.walk import pipeline_parts, targets, walk


def emit_process(layout: Layout, tables: TableEmitter, out: Writer, most_header_bytes: int) -> None:
    """``process_one`` and the batch entry point."""
    out.line(f"#define INA_MOST_HEADER_BYTES {most_header_bytes}")
    out.line()
    _packet_function(layout, tables, out, main=False)
    if layout.main_path is not None:
        _packet_function(layout, tables, out, main=True)
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
                out.line("room = ina_room(out, S->most_replicas, INA_MOST_HEADER_BYTES);")
                out.line("if (length >= room) break;")
            first, last = layout.first_bytes
            fetch = f"ina_prefetch(at[INA_PREFETCH].data, {first}, {last})"
            out.line(f"if (INA_LIKELY(at < fetched)) {fetch};")
            if layout.main_path is not None:
                out.line(f"const bool fits = {_is_for_main(layout)};")
                out.line("if (INA_LIKELY(fits) && process_main(S, at, out, &room)) continue;")
            out.line("ina_packet_in storage;")
            out.line("const ina_packet_in *const one = ina_gather(at, &storage, S->gathered);")
            out.line("if (one) process_one(S, one, out);")
            out.line("room = 0;")
        out.line("pthread_mutex_unlock(&S->mutex);")
        out.line("return (size_t)(at - in);")
    out.line()


def _is_for_main(layout: Layout) -> str:
    """Whether the main path can read the frame's parts where they are."""
    if layout.tail_header is None or layout.main_path is None:
        return "!at->tail"
    split, size = layout.headers_bytes, layout.main_path.size_bytes
    return f"!at->tail || (at->length == {split} && length == {size})"


def _packet_function(layout: Layout, tables: TableEmitter, out: Writer, *, main: bool) -> None:
    """``process_one`` for any packet; ``process_main`` returns false, with nothing done, off the
    main path."""
    general = "INA_APART void" if layout.main_path is not None else "INA_INLINE void"
    head = "INA_INLINE bool process_main" if main else f"{general} process_one"
    parameters = "state *const S, const ina_packet_in *const in, ina_output *const out"
    if main:
        parameters += ", size_t *const room"
    with out.block(f"{head}({parameters})"):
        early = _receive(layout, tables, out, main=main)
        out.line(f"ingress_main(S, p{early});" if main else "ingress(S, p);")
        _replicas(layout, out, "return true;" if main else "return;")
        if main:
            _unpack_late(layout, out)
        sums = emit_wire_sums(layout, out)
        fixed = tables.read_fixed()
        saved = _saved(layout)
        arrays = [path for path in saved if _is_stack_array(path)]
        for number, path in enumerate(saved):
            _save(out, path, number)
        if main:
            out.line("ina_tail shared = {NULL, 0, out->share_tails && copies > 1, false};")
        # What the copies go on from: bytes that are stored cannot change these, as those of *out.
        out.line("ina_packet_out *sent = out->packets + out->count;")
        out.line("uint8_t *to = out->arena + out->arena_used;")
        out.line("uint32_t *const depth_pkts = out->depth_pkts;")
        with out.block("for (uint32_t i = 0; i < copies; i++)"):
            # Scalars even before the first copy: so nothing is carried from one copy to the next.
            for number, path in enumerate(saved):
                if path not in arrays:
                    _restore(out, path, number)
            if arrays:
                with out.block("if (i > 0)"):
                    for number, path in enumerate(saved):
                        if path in arrays:
                            _restore(out, path, number)
            _send(layout, out, sums, fixed, main=main)
        out.line("out->arena_used = (size_t)(to - out->arena);")
        out.line("out->count = (size_t)(sent - out->packets);")
        if main:
            out.line("*room = 0;")
            out.line("return true;")
    out.line()


def _unpack_late(layout: Layout, out: Writer) -> None:
    """From here on the main path's fields are where those of other paths are."""
    for header, field in sorted(layout.late):
        ref = FieldRef(header, field, layout.program.headers[header].type.by_name[field].width_bits)
        layout.on_main = True
        value = layout.field(ref)
        layout.on_main = False
        out.line(f"{layout.field(ref)} = {value};")


def _set(layout: Layout, out: Writer, field: str, value: str, width_bits: int) -> None:
    """A standard_metadata field, if the program has any use for it."""
    target = layout.standard(field)
    if target is not None:
        cut = "" if width_bits in (8, 16, 32, 64) else f" & INA_MASK({width_bits})"
        out.line(f"{target} = ({value}){cut};")


def _is_stack_array(path: str) -> bool:
    """Whether the path is a C array (a whole stack or its validity), which = does not copy."""
    return path.startswith("p->arrays->") and not path.endswith("]") and "." not in path


def _save(out: Writer, path: str, number: int) -> None:
    if _is_stack_array(path):
        out.line(f"__typeof__({path}) saved_{number};")
        out.line(f"memcpy(&saved_{number}, &{path}, sizeof saved_{number});")
    else:
        out.line(f"const __typeof__({path}) saved_{number} = {path};")


def _restore(out: Writer, path: str, number: int) -> None:
    if _is_stack_array(path):
        out.line(f"memcpy(&{path}, &saved_{number}, sizeof saved_{number});")
    else:
        out.line(f"{path} = saved_{number};")


def _receive(layout: Layout, tables: TableEmitter, out: Writer, *, main: bool) -> str:
    """Everything before ingress; returns what ingress has of it but the packet."""
    program = layout.program
    out.line("packet storage;")
    out.line("packet_arrays arrays;")
    out.line("packet *const p = &storage;")
    out.line("p->arrays = &arrays;")
    out.line("p->data = in->data;")
    out.line("p->length = (uint32_t)ina_length(in);")
    out.line("p->truncate = UINT32_MAX;")
    for name, header in program.headers.items():
        if header.metadata:
            out.line(f"{layout.header(name)} = ({layout.metadata[name].c_name}){{0}};")
        elif not header.stack:
            out.line(f"{layout.valid(name)} = 0;")
            out.line(f"{layout.wire(name)} = {layout.wire_before(name)};")
            if not layout.is_large(name):
                c_type = layout.types[header.type.name].c_name
                out.line(f"{layout.header(name)} = ({c_type}){{0}};")
    for name in program.stacks:
        path = layout.stack(name)
        out.line(f"memset({path}, 0, sizeof {path});")
        out.line(f"memset({path}_valid, 0, sizeof {path}_valid);")
        out.line(f"{path}_next = 0;")
    _set(layout, out, "ingress_port", "in->port", 9)
    _set(layout, out, "packet_length", "p->length", 32)
    _set(layout, out, "ingress_global_timestamp", "in->now_ns / 1000", 48)
    if main:
        out.line("if (!parse_main(p)) return false;")
        if layout.tail_header is not None:
            out.line(f"if (in->tail) {layout.wire(layout.tail_header)} = in->tail;")
        out.line(f"const uint32_t parser_error = {program.errors.get('NoError', 0)};")
    else:
        out.line("const uint32_t parser_error = parse(p);")
    out.line("(void)parser_error;")
    _set(layout, out, "parser_error", "parser_error", 32)
    for name, header in program.headers.items():
        if not header.metadata and not header.stack and layout.is_large(name):
            path = layout.header(name)
            out.line(f"if (!{layout.valid(name)}) memset(&{path}, 0, sizeof {path});")
    early = tables.find_early() if main else ""
    if any(checksum.verify for checksum in program.checksums):
        verify = "verify_checksums_main" if main else "verify_checksums"
        out.line(f"const bool checksum_error = {verify}(p);")
        out.line("(void)checksum_error;")
        _set(layout, out, "checksum_error", "checksum_error", 1)
    if main and layout.main is not None:
        layout.on_main = True
        for condition in layout.main.after:
            out.line(f"if (INA_UNLIKELY(!{Expressions(layout).boolean(condition)})) return false;")
        layout.on_main = False
    return early


def _replicas(layout: Layout, out: Writer, leave: str) -> None:
    out.line("ina_replica single;")
    out.line("const ina_replica *replicas = &single;")
    out.line("uint32_t copies = 1;")
    group, spec = layout.standard("mcast_grp"), layout.standard("egress_spec")
    with out.block(f"if ({group})"):
        out.line(f"replicas = S->groups[{group}].replicas;")
        out.line(f"copies = S->groups[{group}].count;")
        _set(layout, out, "instance_type", "INA_INSTANCE_REPLICATION", 32)
    with out.block("else"):
        out.line(f"if ({spec} == INA_DROP_PORT) {leave}")
        out.line(f"single.egress_port = {spec};")
        rid = layout.standard("egress_rid")
        out.line(f"single.rid = {rid or 0};")
        _set(layout, out, "instance_type", "INA_INSTANCE_NORMAL", 32)


def _saved(layout: Layout) -> list[str]:
    """What egress and checksum updates change, so that each copy starts from ingress's result."""
    program = layout.program
    read = _read_fields(pipeline_parts(program, program.egress))
    paths: dict[str, None] = {}
    whole: set[str] = set()
    for node in walk(tuple(pipeline_parts(program, program.egress))):
        if isinstance(node, (CopyHeader, SetValid)):
            ref = node.target if isinstance(node, CopyHeader) else node.header
            whole.add(ref.name)
        elif isinstance(node, (CopyStack, ShiftStack)):
            whole.add(node.target if isinstance(node, CopyStack) else node.stack)
        elif isinstance(node, Truncate):
            paths["p->truncate"] = None
    checked = [checksum.target for checksum in program.checksums if checksum.update]
    for target in [*targets(tuple(pipeline_parts(program, program.egress))), *checked]:
        if isinstance(target, StackFieldRef):
            whole.add(target.stack)
        elif isinstance(target, ArrayFieldRef):
            whole.add(target.header)
        elif (
            isinstance(target, FieldRef)
            and target.header not in whole
            and (target in read or not program.headers[target.header].metadata)
        ):
            paths[layout.field(target)] = None
    for name in sorted(whole):
        if name in program.stacks or program.headers[name].stack:
            stack = layout.stack(program.headers[name].stack if name in program.headers else name)
            for suffix in ("", "_valid", "_next"):
                paths[stack + suffix] = None
        else:
            paths[layout.header(name)] = None
            paths[layout.valid(name)] = None
            paths[layout.wire(name)] = None
    set_each_time = {layout.standard(f) for f in ("egress_port", "egress_spec", "egress_rid")}
    return [path for path in paths if path not in set_each_time]


def _read_fields(parts: list[Any]) -> set[FieldRef]:
    """Fields that some expression reads (what is only assigned to is not read)."""
    refs = Counter(node for node in walk(tuple(parts)) if isinstance(node, FieldRef))
    refs.subtract(Counter(t for t in targets(tuple(parts)) if isinstance(t, FieldRef)))
    return {ref for ref, uses in refs.items() if uses > 0}


def _send(layout: Layout, out: Writer, sums: str, fixed: str, *, main: bool) -> None:
    out.line("const uint32_t port = replicas[i].egress_port & (INA_MAX_PORTS - 1);")
    _set(layout, out, "egress_port", "port", 9)
    _set(layout, out, "egress_rid", "replicas[i].rid", 16)
    _set(layout, out, "packet_length", "p->length", 32)
    _set(layout, out, "enq_timestamp", "in->now_ns / 1000", 32)
    _set(layout, out, "enq_qdepth", "depth_pkts[port]", 19)
    _set(layout, out, "deq_qdepth", "depth_pkts[port]", 19)
    _set(layout, out, "deq_timedelta", "0", 32)
    _set(layout, out, "egress_global_timestamp", "in->now_ns / 1000", 48)
    spec = layout.standard("egress_spec")
    out.line(f"{spec} = 0;")
    out.line(f"egress(S, p{fixed});")
    out.line(f"if ({spec} == INA_DROP_PORT) continue;")
    out.line(f"update_checksums(p{sums});")
    call = "deparse_main(p, to, &shared)" if main else "deparse(p, to)"
    out.line(f"const uint32_t length = {call};")
    tail = "NULL, 0"
    if main:
        tail = "shared.used ? shared.data : NULL, shared.used ? shared.length : 0"
    out.line(f"*sent++ = (ina_packet_out){{to, length, port, {tail}}};")
    out.line("to += length;")
    out.line("depth_pkts[port]++;")
