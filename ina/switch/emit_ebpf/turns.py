"""What a frame's way has in common whether it is copied or stays where it lies: how it comes to
ingress and leaves it, how a copy comes to egress and leaves that."""

from __future__ import annotations

from ina.switch.emit.checksums import emit_wire_sums
from ina.switch.emit.layout import Layout
from ina.switch.emit.standard import set_standard
from ina.switch.emit.writer import Writer
from ina.switch.emit_ebpf.carry import Carry


def arrive(layout: Layout, out: Writer) -> None:
    """At ingress, by ``port``, of ``size`` bytes."""
    out.line("p->length = (uint32_t)size;")
    if layout.plan.counts_length:
        out.line("p->told_length = p->length;")
    set_standard(layout, out, "ingress_port", "port")
    set_standard(layout, out, "packet_length", "p->length")
    set_standard(layout, out, "ingress_global_timestamp", "ina_now_us()")


def decide(layout: Layout, out: Writer, drop: str) -> None:
    """Declares ``group`` and ``to``, where ingress wants it to go; ``drop``: nowhere."""
    group, spec = layout.standard("mcast_grp"), layout.standard("egress_spec")
    out.line(f"const uint32_t group = {group or 0};")
    out.line(f"const uint32_t to = group ? group : {spec or 0};")
    out.line(f"if (!group && to == INA_DROP_PORT) {drop}")
    kind = "group ? INA_INSTANCE_REPLICATION : INA_INSTANCE_NORMAL"
    set_standard(layout, out, "instance_type", kind)


def carry_on(layout: Layout, carry: Carry, out: Writer) -> None:
    """To egress: ``c`` in front of the frame, which is whole."""
    out.line("if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(carry))) return XDP_ABORTED;")
    out.line("carry *const c = (carry *)(long)ctx->data_meta;")
    out.line("if ((void *)(c + 1) > (void *)(long)ctx->data) return XDP_ABORTED;")
    out.line("c->to = (uint16_t)to;")
    out.line("c->is_group = group != 0;")
    out.line("c->frame = group ? ina_next_frame() : 0;")
    carry.emit_save(layout, out)
    out.line("if (ina_live[2]) ina_note_carried(ctx, sizeof(carry));")
    out.line("return ina_send(ctx, group, to);")


def pass_egress(layout: Layout, out: Writer, suffix: str = "") -> None:
    """A copy for ``port`` with its ``rid``, whose headers are known. ``suffix``: of functions."""
    set_standard(layout, out, "egress_port", "port")
    set_standard(layout, out, "egress_rid", "rid")
    told = "p->told_length" if layout.plan.counts_length else "p->length"
    set_standard(layout, out, "packet_length", told)
    for field in ("enq_timestamp", "egress_global_timestamp"):
        set_standard(layout, out, field, "ina_now_us()")
    spec = layout.standard("egress_spec")
    if spec:
        out.line(f"{spec} = 0;")
    out.line(f"egress{suffix}(p);")
    if spec:
        out.line(f"if ({spec} == INA_DROP_PORT) return XDP_DROP;")
    sums = emit_wire_sums(layout, out)
    out.line(f"update_checksums{suffix}(p{sums});")


def leave(out: Writer) -> None:
    """A copy that is whole."""
    out.line("bpf_xdp_adjust_meta(ctx, (int)sizeof(carry)); // nobody behind us reads it")
    out.line("return XDP_PASS;")
