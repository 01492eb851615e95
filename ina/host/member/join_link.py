"""A worker's way to the switch, as far as joining needs it."""

from __future__ import annotations

from typing import Protocol

from ina.extension.host import Framing, RtoLimits
from ina.protocol.peer import Peer


class JoinLink(Protocol):
    """Open towards the switch, before there is a worker."""

    @property
    def own(self) -> Peer:
        """What the switch sees as this worker."""

    @property
    def leads_to(self) -> Peer | None:
        """The node that packets go to without being told; None: the ticket's."""

    @property
    def switch_port(self) -> int:
        """Number of the switch's port; 0: the controller knows."""

    @property
    def is_shm(self) -> bool:
        """Over shared memory, which the switch may close."""

    @property
    def rto(self) -> RtoLimits:
        """How soon packets are sent again."""

    @property
    def is_listening(self) -> bool:
        """Whether results that the switch sends to several workers at once come here, too."""

    @property
    def framing(self) -> Framing:
        """What is around INA's header and values in its packets."""

    def lead_to(self, node: Peer) -> None:
        """Packets go to this one without being told, if that is for the link to say.

        To be called before there is a worker. Raises TransportError.
        """

    def set_dscp(self, dscp: int) -> None:
        """What its packets carry from now on, 0 to 63, where they have IP headers.

        To be called before there is a worker. Raises TransportError.
        """

    def stop_listening(self) -> None:
        """No longer. To be told to a transport first. Idempotent."""

    def close(self) -> None:
        """Let go of the descriptors, not of the transport's. Idempotent."""
