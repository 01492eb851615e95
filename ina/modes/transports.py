"""What packets go by between a worker and its switch: names, and which modes' packets each carries.

``ina.host.link`` opens them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

from ina import modes
from ina.p4 import names

TransportName = Literal["auto", "udp", "shm", "roce", "roce-soft"]
"""``auto``: shared memory where the switch offers it and is on this host, else UDP; of jobs whose
packets are RoCEv2's the RDMA device on the way to the switch, else ``roce-soft``, this process."""

RDMA: Final = "roce"
SOFT_RDMA: Final = "roce-soft"
_OF_FRAMINGS: Mapping[str, tuple[TransportName, ...]] = {
    "udp": ("udp", "shm"),
    "rocev2": (RDMA, SOFT_RDMA),
    "ring": (RDMA, SOFT_RDMA),
}
_MODES: Mapping[str, str] = {RDMA: names.ROCE, SOFT_RDMA: names.ROCE}


def transport_names() -> tuple[str, ...]:
    """All of them."""
    return get_args(TransportName)


def transports_of(mode: str) -> tuple[TransportName, ...]:
    """By which a mode's packets can go. Raises :class:`UnknownModeError`."""
    return _OF_FRAMINGS[modes.of(mode).framing]


def mode_for(transport: str, mode: str) -> str:
    """What a worker asks for that wants this transport, and this mode or, empty, any."""
    return mode or _MODES.get(transport, "")
