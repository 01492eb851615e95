"""Counters of the embedded switch, read where P4 and the ports keep them."""

from __future__ import annotations

from typing import Any

from ina.torch.embedded import HOST


def read() -> dict[str, Any] | None:
    """The P4 program's counters, over P4Runtime, and the ports'; None if no switch runs here."""
    embedded = HOST.current()
    if embedded is None:
        return None
    shown, ports = embedded.show(), embedded.switch.stats()
    return {
        "program": shown.program,
        "counters": [
            {
                "name": counter.name,
                "index": counter.index,
                "label": counter.label,
                "packets": counter.packets,
                "bytes": counter.bytes,
            }
            for counter in shown.counters
        ],
        "rx_packets": ports.rx_packets,
        "tx_packets": ports.tx_packets,
        "loss_in_packets": ports.loss_in_packets,  # injected: INA_LOSS_RATE
        "loss_out_packets": ports.loss_out_packets,
    }
