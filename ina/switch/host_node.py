"""A soft switch for the ranks of one host: shared memory to them, one UDP socket up.

It is the lowest node of its job's tree (docs/fabric.md). No client of P4Runtime reaches it: the
process that runs it inserts what the controller has answered.
"""

from __future__ import annotations

from ina.errors import InvalidInputError
from ina.p4 import names
from ina.switch.job_switch import JobSwitch
from ina.switch.ports import ShmPort, UdpPort

UPLINK_PORT, SHM_PORT = 1, 2


class HostNodeSwitch(JobSwitch):
    """For one job. From its making until :meth:`close` it runs."""

    def __init__(self, values: int, slots: int, own_host: str) -> None:
        """`values` int32 a packet; `slots`: of the job, both versions; `own_host`: IPv4 address of
        this machine towards the switch above.

        Raises InaError: no such build or not so many slots, no C compiler, an address that is not
        this machine's.
        """
        if slots > names.SLOTS_TOTAL:
            raise InvalidInputError(f"{slots} slots: a soft switch has {names.SLOTS_TOTAL}")
        super().__init__(values, [UdpPort(UPLINK_PORT, own_host, 0), ShmPort(SHM_PORT)])

    def set_dscp(self, dscp: int) -> None:
        """Of what goes up: ranks' packets have no IP headers here."""
        self._switch.set_shm_dscp(SHM_PORT, dscp)

    @property
    def shm(self) -> str:
        """Where ranks attach."""
        return self._switch.shm_address(SHM_PORT)

    @property
    def uplink(self) -> tuple[str, int]:
        """IPv4 address and UDP port that the switch above sees."""
        return self._switch.udp_address(UPLINK_PORT)

    @property
    def attached(self) -> int:
        """How many ranks are attached now."""
        return self._switch.stats().ports[SHM_PORT].attached
