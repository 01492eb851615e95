"""A soft switch for one job, in a process of the job, which programs it as it is told."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from finsy import P4CounterEntry, P4Schema, P4TableEntry
from finsy.proto import p4r

from ina.p4 import compiled, names
from ina.switch.ports import Port
from ina.switch.server import SoftSwitch
from ina.switch.two_mappings import TwoMappings


class JobSwitch:
    """From its making until :meth:`close` it runs."""

    def __init__(self, values: int, ports: Sequence[Port], mode: str = names.DEFAULT_MODE) -> None:
        """`values` int32 a packet, of the build of the program of `mode`.

        Raises InaError: no such build, no C compiler, an address that is not this machine's.
        """
        program = compiled(values, mode)
        self._schema = P4Schema(program.p4info, program.bmv2_json)
        self._counters = names.job_counters(mode)
        self._mappings = TwoMappings[p4r.Entity](self._table_of)
        self._jobs: dict[int, None] = {}  # numbers of all mappings that there were, as a set
        self._switch = SoftSwitch(ports, grpc_addr=None)
        self._switch.start()
        try:
            self._switch.preload(self._schema.get_pipeline_config())
        except BaseException:
            self._switch.stop()
            raise

    def program(self, entities: Iterable[bytes], job: int) -> None:
        """Insert a job's entities (p4.v1.Entity); `job`: its number. Raises InaError."""
        self._mappings.begin(job, self._inserted(entities))

    def add_mapping(self, entities: Iterable[bytes], job: int) -> None:
        """Insert those of the job's next mapping, beside what is there. Raises InaError.

        `job`: its number. There are none where the switch has no part in that mapping.
        """
        self._mappings.add(job, self._inserted(entities))

    def end_change(self, *, is_new_used: bool) -> None:
        """Delete those of the mapping that is not used any more, but for what both have."""
        self._switch.delete(self._mappings.end_change(is_new_used=is_new_used))

    def _inserted(self, entities: Iterable[bytes]) -> list[p4r.Entity]:
        found = [p4r.Entity.FromString(entity) for entity in entities]
        self._switch.insert(found)
        self._jobs |= dict.fromkeys(self._numbers(found))
        return found

    def _table_of(self, entity: p4r.Entity) -> str:
        if not entity.HasField("table_entry"):
            return ""
        return self._schema.tables[entity.table_entry.table_id].name

    def _numbers(self, entities: Iterable[p4r.Entity]) -> list[int]:
        """Job numbers that these let in: several, where lanes are dealt among aggregators."""
        table = self._schema.tables[names.JOBS].id
        rows = (it for it in entities if it.table_entry.table_id == table)
        found = [P4TableEntry.decode(it, self._schema) for it in rows]
        return [int(it.match["job"]) for it in found if it.match is not None]

    def counts(self) -> dict[str, int]:
        """Packets by counter of the job: "contributions", "results", "replays", "passed_down"."""
        found = {name.rpartition("job_")[2]: 0 for name in self._counters}
        for name, job in itertools.product(self._counters, self._jobs):
            wanted = P4CounterEntry(name, index=job).encode(self._schema)
            (entity,) = self._switch.read([wanted])
            told: Any = P4CounterEntry.decode(entity, self._schema)
            found[name.rpartition("job_")[2]] += told.packet_count
        return found

    def close(self) -> None:
        """End it; who sends to it hears no more of it."""
        self._switch.stop()
