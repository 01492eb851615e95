"""A soft switch for one job, in a process of the job, which programs it as it is told."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from finsy.proto import p4r

from ina.p4 import compiled, names
from ina.switch.ports import Port
from ina.switch.server import SoftSwitch
from ina.switch.two_mappings import TwoMappings
from ina.tables.entities import entities_of
from ina.tables.values import Counter, Entry


class JobSwitch:
    """From its making until :meth:`close` it runs."""

    def __init__(self, values: int, ports: Sequence[Port], mode: str = names.DEFAULT_MODE) -> None:
        """`values` int32 a packet, of the build of the program of `mode`.

        Raises InaError: no such build, no C compiler, an address that is not this machine's.
        """
        program = compiled(values, mode)
        self._entities = entities_of(program.p4info, program.bmv2_json)
        self._counters = names.job_counters(mode)
        self._mappings = TwoMappings[p4r.Entity](self._entities.table_of)
        self._jobs: dict[int, None] = {}  # numbers of all mappings that there were, as a set
        self._switch = SoftSwitch(ports, grpc_addr=None)
        self._switch.start()
        try:
            self._switch.preload(self._entities.config)
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

    def _numbers(self, entities: Iterable[p4r.Entity]) -> list[int]:
        """Job numbers that these let in: several, where lanes are dealt among aggregators."""
        rows = (self._entities.decode(it) for it in entities)
        return [it.exact("job") for it in rows if isinstance(it, Entry) and it.table == names.JOBS]

    def counts(self) -> dict[str, int]:
        """Packets by counter of the job: "contributions", "results", "replays", "passed_down"."""
        found = {name.rpartition("job_")[2]: 0 for name in self._counters}
        for name, job in itertools.product(self._counters, self._jobs):
            (entity,) = self._switch.read([self._entities.counter(Counter(name, job))])
            found[name.rpartition("job_")[2]] += self._entities.count(entity).packets
        return found

    def close(self) -> None:
        """End it; who sends to it hears no more of it."""
        self._switch.stop()
