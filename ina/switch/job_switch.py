"""A soft switch for one job, in a process of the job, which programs it as it is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from finsy import P4CounterEntry, P4Schema
from finsy.proto import p4r

from ina.p4 import compiled, names
from ina.switch.ports import Port
from ina.switch.server import SoftSwitch


class JobSwitch:
    """From its making until :meth:`close` it runs."""

    def __init__(self, values: int, ports: Sequence[Port], mode: str = names.PROGRAM) -> None:
        """`values` int32 a packet, of the build of the program of `mode`.

        Raises InaError: no such build, no C compiler, an address that is not this machine's.
        """
        program = compiled(values, mode)
        self._schema = P4Schema(program.p4info, program.bmv2_json)
        self._counters = names.job_counters(mode)
        self._job = 0
        self._mappings: list[list[p4r.Entity]] = []  # one, or the older and the newer
        self._switch = SoftSwitch(ports, grpc_addr=None)
        self._switch.start()
        try:
            self._switch.preload(self._schema.get_pipeline_config())
        except BaseException:
            self._switch.stop()
            raise

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
        for name in self._counters:
            wanted = P4CounterEntry(name, index=self._job).encode(self._schema)
            (entity,) = self._switch.read([wanted])
            told: Any = P4CounterEntry.decode(entity, self._schema)
            found[name.rpartition("job_")[2]] = told.packet_count
        return found

    def close(self) -> None:
        """End it; who sends to it hears no more of it."""
        self._switch.stop()


def _parsed(entities: Iterable[bytes]) -> list[p4r.Entity]:
    return [p4r.Entity.FromString(entity) for entity in entities]
