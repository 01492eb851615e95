"""The XDP programs of a pipeline: at interfaces, for the controller, and in memory."""

from __future__ import annotations

from ina.switch.emit.writer import Writer
from ina.switch.emit_ebpf.carry import Carry


def emit_programs(carry: Carry, out: Writer, *, has_main: bool) -> None:
    """``ina_ingress``; what a copy takes at its interface, what hands a frame to the controller,
    and what runs a copy in memory. ``has_main``: some packets stay where they lie."""
    with out.block('SEC("xdp") int ina_ingress(struct xdp_md *const ctx)'):
        out.line("const uint32_t interface = ctx->ingress_ifindex;")
        out.line("const uint32_t *const from = bpf_map_lookup_elem(&ina_ports, &interface);")
        out.line("if (!from) return XDP_PASS; // an interface that is no port")
        out.line("const uint32_t port = *from;")
        out.line("if (ina_loses(port)) return XDP_DROP;")
        _receive(out)
        if has_main:
            out.line("const int verdict = take_main(ctx, p, port, size);")
            out.line("if (verdict != INA_ANOTHER_WAY) return verdict;")
        out.line("return take_any(ctx, p, port, size);")
    out.line()
    copy = "const uint32_t port, const uint32_t rid"
    with out.block(f"INA_INLINE int leave(struct xdp_md *const ctx, {copy})"):
        _receive(out)
        if has_main:
            out.line("const int verdict = leave_main(ctx, p, port, rid, size);")
            out.line("if (verdict != INA_ANOTHER_WAY) return verdict;")
        out.line("return leave_any(ctx, p, port, rid, size);")
    out.line()
    _emit_leave(carry, out)
    _emit_packet_in(out)
    out.line("INA_MAP(ina_copy_of_test, MAP_ARRAY, 4, 8, 1, 0);")
    with out.block('SEC("xdp") int ina_egress_of_test(struct xdp_md *const ctx)'):
        out.line("const uint32_t zero = 0;")
        out.line("const uint32_t *const copy = bpf_map_lookup_elem(&ina_copy_of_test, &zero);")
        out.line("if (!copy) return XDP_ABORTED;")
        out.line("return leave(ctx, copy[0], copy[1]);")
    out.line()


def _emit_leave(carry: Carry, out: Writer) -> None:
    with out.block('SEC("xdp/devmap") int ina_leave(struct xdp_md *const ctx)'):
        out.line("const uint32_t interface = ctx->egress_ifindex;")
        out.line("const uint32_t *const port = bpf_map_lookup_elem(&ina_ports, &interface);")
        out.line("if (!port) return XDP_DROP;")
        carry.emit_find(out)
        out.line("uint32_t rid = 0;")
        with out.block("if (c->is_group)"):
            out.line("const uint32_t number = ina_copies_before(*port, c->frame);")
            out.line("const struct ina_copy copy = {c->to, (uint16_t)*port, number};")
            out.line("const uint32_t *const its = bpf_map_lookup_elem(&ina_rids, &copy);")
            out.line("if (!its) return XDP_DROP;")
            out.line("rid = *its;")
        out.line("if (ina_loses(*port)) return XDP_DROP; // when it has been counted")
        out.line("return leave(ctx, *port, rid);")
    out.line()


def _emit_packet_in(out: Writer) -> None:
    with out.block('SEC("xdp") int ina_packet_in(struct xdp_md *const ctx)'):
        out.line("const uint32_t zero = 0;")
        out.line("const int verdict = leave(ctx, ina_live[1], 0);")
        out.line("packet *const p = bpf_map_lookup_elem(&ina_packets, &zero);")
        out.line("if (verdict != XDP_PASS || !p) return XDP_DROP;")
        out.line("uint64_t size = bpf_xdp_get_buff_len(ctx);")
        out.line("INA_ONE_REGISTER(size);")
        out.line("if (size == 0 || size > INA_ROOM) return XDP_DROP;")
        out.line("if (bpf_xdp_load_bytes(ctx, 0, p->in, (uint32_t)size)) return XDP_ABORTED;")
        out.line("bpf_ringbuf_output(&ina_controller, p->in, size, 0);")
        out.line("return XDP_DROP;")
    out.line()


def _receive(out: Writer) -> None:
    """``p``: room for a frame, and ``size``."""
    out.line("const uint32_t zero = 0;")
    out.line("packet *const p = bpf_map_lookup_elem(&ina_packets, &zero);")
    out.line("if (!p) return XDP_ABORTED;")
    out.line("uint64_t size = bpf_xdp_get_buff_len(ctx);")
    out.line("INA_ONE_REGISTER(size);")
    out.line("if (size == 0 || size > INA_ROOM) return XDP_DROP;")
