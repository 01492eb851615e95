"""Runs a soft switch until it is told to stop, and says where it is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from finsy.proto import p4r

from ina.cli.common.output import emit
from ina.cli.common.told import told_to_stop
from ina.switch.ports import AfPacketPort, FramesPort, PcapPort, Port, ShmPort, UdpPort
from ina.switch.server import SoftSwitch
from ina.switch.xdp.links import XdpMode

_GENERIC_COSTS = ": each frame is copied to a buffer of the kernel's first"


def serve_until_told(
    soft_switch: SoftSwitch,
    device_id: int,
    *,
    config: p4r.ForwardingPipelineConfig | None = None,
    metrics: str = "",
    json: bool = False,
    xdp_mode: XdpMode | None = None,
    pin: str = "",
) -> None:
    """Starts it, prints the ready line, waits for Ctrl-C or SIGTERM, stops it.

    ``config``: a program to start with. ``metrics``: host:port of a Prometheus endpoint; empty:
    none. ``xdp_mode``: of its interfaces, and ``pin`` its name there, to say. Raises what they
    raise.
    """
    with ExitStack() as stack:
        wait = stack.enter_context(told_to_stop())
        stack.enter_context(soft_switch)
        if config is not None:
            soft_switch.preload(config)
        ready: dict[str, Any] = {"device_id": device_id}
        if xdp_mode is not None:
            ready["xdp_mode"] = xdp_mode.value
        if pin:
            ready |= {"pin": pin, "taken_over": soft_switch.was_taken_over}
        if metrics:
            ready["metrics"] = _serve_metrics(metrics, device_id, soft_switch, stack)
        _say_ready(soft_switch, ready, json)
        wait()


def _serve_metrics(address: str, device_id: int, soft_switch: SoftSwitch, stack: ExitStack) -> str:
    from ina.metrics import MetricsServer
    from ina.switch.metrics import SwitchCollector

    collector = SwitchCollector(device_id, soft_switch.stats)
    return stack.enter_context(MetricsServer(address, [collector])).address


def _say_ready(soft_switch: SoftSwitch, ready: dict[str, Any], json: bool) -> None:
    ports: dict[str, Any] = {str(p.number): _place(soft_switch, p) for p in soft_switch.ports}
    said = [f"P4Runtime {soft_switch.grpc_addr}", f"device {ready['device_id']}"]
    mode = ready.get("xdp_mode", "")
    how = f" ({mode}{_GENERIC_COSTS if mode == XdpMode.generic else ''})" if mode else ""
    said += [f"port {number} {place}{how}" for number, place in ports.items()]
    if "pin" in ready:
        said.append(f"pin {ready['pin']}{' taken over' if ready['taken_over'] else ''}")
    said += [f"metrics {ready['metrics']}"] if "metrics" in ready else []
    document = {"grpc_addr": soft_switch.grpc_addr, **ready, "ports": ports}
    emit(document, json, f"ready: {', '.join(said)}")


def _place(soft_switch: SoftSwitch, port: Port) -> str:
    match port:
        case UdpPort(number) | FramesPort(number):
            host, udp_port = soft_switch.udp_address(number)
            return f"{port.kind}:{host}:{udp_port}"
        case ShmPort(number):
            return f"shm:{soft_switch.shm_address(number)}"
        case AfPacketPort(_, interface):
            return f"afpacket:{interface}"
        case PcapPort(_, read, write):
            return f"pcap:{read or ''},{write or ''}"
