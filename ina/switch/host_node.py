"""A soft switch for the ranks of one host: shared memory to them, one UDP socket up.

It is the lowest node of its job's tree (docs/fabric.md). No client of P4Runtime reaches it: the
process that runs it inserts what the controller has answered.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from finsy import P4CounterEntry, P4Schema
from finsy.proto import p4r

from ina.errors import InvalidInputError
from ina.p4 import compiled, names
from ina.switch.ports import ShmPort, UdpPort
from ina.switch.server import SoftSwitch

UPLINK_PORT, SHM_PORT = 1, 2


class HostNodeSwitch:
    """For one job. From its making until :meth:`close` it runs."""

    def __init__(self, values: int, slots: int, own_host: str) -> None:
        """`values` int32 a packet; `slots`: of the job, both versions; `own_host`: IPv4 address of
        this machine towards the switch above.

        Raises InaError: no such build or not so many slots, no C compiler, an address that is not
        this machine's.
        """
        if slots > names.SLOTS_TOTAL:
            raise InvalidInputError(f"{slots} slots: a soft switch has {names.SLOTS_TOTAL}")
        program = compiled(values)
        self._schema = P4Schema(program.p4info, program.bmv2_json)
        self._job = 0
        self._mappings: list[list[p4r.Entity]] = []  # one, or the older and the newer
        self._switch = SoftSwitch(
            [UdpPort(UPLINK_PORT, own_host, 0), ShmPort(SHM_PORT)], grpc_addr=None
        )
        self._switch.start()
        try:
            self._switch.preload(self._schema.get_pipeline_config())
        except BaseException:
            self._switch.stop()
            raise

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

    def program(self, entities: Iterable[bytes], job: int) -> None:
        """Insert a job's entities (p4.v1.Entity); `job`: its number. Raises InaError."""
        self._mappings = [_parsed(entities)]
        self._switch.insert(self._mappings[0])
        self._job = job

    def add_mapping(self, entities: Iterable[bytes]) -> None:
        """Insert those of the job's next mapping, beside what is there. Raises InaError."""
        self._mappings.append(_parsed(entities))
        self._switch.insert(self._mappings[-1])

    def end_change(self, *, is_new_used: bool) -> None:
        """Delete those of the mapping that is not used any more, but for what both have."""
        if len(self._mappings) < 2:
            return
        gone, kept = self._mappings if is_new_used else reversed(self._mappings)
        self._switch.delete(one for one in reversed(gone) if self._is_of_mapping(one))
        shared = [one for one in gone if not self._is_of_mapping(one)]
        self._mappings = [[*shared, *kept]]

    def _is_of_mapping(self, entity: p4r.Entity) -> bool:
        """Whether its key has an epoch: other entries are the job's, whatever its mapping is."""
        tables = (names.JOBS, names.MEMBERS)
        return entity.table_entry.table_id in {self._schema.tables[name].id for name in tables}

    def counts(self) -> dict[str, int]:
        """Packets by counter of the job: "contributions", "results", "replays", "passed_down"."""
        found = {}
        for name in names.JOB_COUNTERS:
            wanted = P4CounterEntry(name, index=self._job).encode(self._schema)
            (entity,) = self._switch.read([wanted])
            told: Any = P4CounterEntry.decode(entity, self._schema)
            found[name.rpartition("job_")[2]] = told.packet_count
        return found

    def close(self) -> None:
        """End it; its ranks hear no more of it."""
        self._switch.stop()


def _parsed(entities: Iterable[bytes]) -> list[p4r.Entity]:
    return [p4r.Entity.FromString(entity) for entity in entities]
