"""The compiled P4 program in the soft switch, driven as the controller drives it."""

from __future__ import annotations

from collections.abc import Sequence

from ina.p4 import compiled, names
from ina.protocol.spec import DropReason
from ina.protocol.switch_model import EPOCH_BITS, Job
from ina.switch.pipeline import Exact, Pipeline
from tests.agreement.reference import worker_mac

_COUNTERS = {
    "contributions": names.JOB_CONTRIBUTIONS,
    "results": names.JOB_RESULTS,
    "replays": names.JOB_REPLAYS,
    "duplicates": names.JOB_DUPLICATES,
    "stale": names.JOB_STALE,
}


class CompiledSwitch:
    """One instance of the pool program; jobs are numbered from 0 to JOBS_TOTAL - 1."""

    def __init__(self, values: int) -> None:
        self.pipeline = Pipeline.load(compiled(values).bmv2_json)
        self._entries: dict[int, list[tuple[str, int]]] = {}

    def install(self, job: Job) -> None:
        """Puts the job's entries in the place of those of its last epoch."""
        self.remove(job.number)
        epoch = Exact(job.epoch % (1 << EPOCH_BITS))
        group = job.number + 1
        params = (job.epoch, job.first_slot, job.slots, job.all_bits, group, job.number)
        entries: list[tuple[str, Sequence[Exact], str, Sequence[int]]] = [
            (names.JOBS, (Exact(job.number), epoch), names.ADMIT_JOB, params)
        ]
        for worker, at in enumerate(job.workers):
            key = (at.port, at.ipv4, at.udp_port, job.number, epoch.value, worker)
            member = tuple(Exact(number) for number in key)
            entries.append((names.MEMBERS, member, names.ADMIT_MEMBER, (1 << worker,)))
            address = (worker_mac(at), at.ipv4, at.udp_port)
            receiver = (Exact(job.number), Exact(worker))
            entries.append((names.RECEIVERS, receiver, names.ADDRESS, address))
        self._entries[job.number] = [
            (table, self.pipeline.insert(table, key, action, action_params))
            for table, key, action, action_params in entries
        ]
        replicas = [(at.port, worker + 1) for worker, at in enumerate(job.workers)]
        self.pipeline.set_multicast(group, replicas)

    def remove(self, number: int) -> None:
        """Takes the job's entries away; a job that is not there is left alone."""
        for table, handle in self._entries.pop(number, []):
            self.pipeline.delete(table, handle)

    def forward(self, dst_mac: int, port: int) -> None:
        """Forwards ordinary frames to a MAC address through a port."""
        self.pipeline.insert(names.DMAC, (Exact(dst_mac),), names.FORWARD, (port,))

    def process(self, port: int, data: bytes) -> list[tuple[int, bytes]]:
        """Returns the frames that leave because of one frame, in order."""
        return self.pipeline.process(port, data)

    def job_counts(self, job: Job) -> dict[str, tuple[int, int]]:
        """Returns the job's counters (packets, bytes), by their short names."""
        return {short: self.pipeline.counter(name, job.number) for short, name in _COUNTERS.items()}

    def drops(self, reason: DropReason) -> tuple[int, int]:
        """Returns the drop counter of a reason (packets, bytes)."""
        return self.pipeline.counter(names.DROPS, reason)

    def close(self) -> None:
        """Frees the instance."""
        self.pipeline.close()
