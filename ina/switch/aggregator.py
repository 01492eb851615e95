"""A soft switch that makes the results of one job, in the process of its rank 0.

It is the root of the job's tree (docs/shared_slots.md), where the controller's file lists none.
"""

from __future__ import annotations

from ina.switch.job_switch import JobSwitch
from ina.switch.ports import UdpPort

DOWN_PORT = 1


class AggregatorSwitch(JobSwitch):
    """For one job. From its making until :meth:`close` it runs."""

    def __init__(self, values: int, own_host: str, mode: str) -> None:
        """`values` int32 a packet, of the program of `mode`; `own_host`: IPv4 address of this
        machine towards the switch.

        Raises InaError: no such build, no C compiler, an address that is not this machine's.
        """
        super().__init__(values, [UdpPort(DOWN_PORT, own_host, 0)], mode)

    @property
    def address(self) -> tuple[str, int]:
        """IPv4 address and UDP port that the switch below sees."""
        return self._switch.udp_address(DOWN_PORT)
