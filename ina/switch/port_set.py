"""A switch's ports, open, and what takes packets from them through a pipeline: a target's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field

from ina.switch.pipeline import Pipeline
from ina.switch.ports import InvalidPortError
from ina.switch.stats import SwitchStats


@dataclass(frozen=True)
class Impairment:
    """What is done to packets at ports, besides forwarding them."""

    loss_rate: float = 0.0
    """Probability in 0..1 that a packet is dropped, at each port and in both directions."""
    loss_seed: int = 0
    """Of the generator that losses are drawn from."""
    port_loss: Mapping[int, float] = field(default_factory=dict)
    """Another rate for some port numbers."""
    delay_us: int = 0
    """So long each packet is kept before it leaves."""


class PortSet(ABC):
    """From :meth:`open` to :meth:`close`, once."""

    @abstractmethod
    def open(self) -> None:
        """Opens the ports; packets are taken from :meth:`start` on.

        Raises :class:`PortInUseError`, :class:`AddressError`, :class:`InvalidPortError`; then
        :meth:`close` closes those that are open.
        """

    @abstractmethod
    def start(self) -> None:
        """Takes packets; they are dropped until a pipeline is installed."""

    @abstractmethod
    def install(self, pipeline: Pipeline) -> None:
        """Packets go through this one; when it returns, through no other any more."""

    @abstractmethod
    def inject(self, number: int, packet: bytes) -> bool:
        """Sends a packet in as if it had come by a port; False: the queue is full."""

    @abstractmethod
    def next_cpu_packet(self, timeout_ns: int) -> bytes | None:
        """The oldest that left by the CPU port and was not taken; None: none came in time."""

    @abstractmethod
    def stats(self) -> SwitchStats:
        """Counters of all ports since :meth:`open`."""

    @abstractmethod
    def stop(self) -> None:
        """No more packets; counters can still be read. May be called again."""

    @abstractmethod
    def close(self) -> None:
        """Closes all that is open, after :meth:`stop`. May be called again."""

    # A target without such ports has none that is open.

    def udp_address(self, number: int) -> tuple[str, int]:
        """Address and UDP port that port ``number`` is bound to. Raises InvalidPortError."""
        raise InvalidPortError(f"port {number} is not an open UDP port of this switch")

    def shm_address(self, number: int) -> str:
        """Where workers attach to shared-memory port ``number``. Raises InvalidPortError."""
        raise InvalidPortError(f"port {number} is not an open shared-memory port")

    def set_shm_dscp(self, number: int, dscp: int) -> None:
        """What the frames of such a port's workers carry, 0 to 63. Raises InvalidPortError."""
        raise InvalidPortError(f"port {number} is not an open shared-memory port")
