"""All jobs of one switch: admission, names, numbers. No I/O; time is passed in.

Every method that changes something either does it wholly or raises and changes nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ina.controller.epochs import EpochCounter
from ina.controller.errors import JobConflictError, JobRequestError, NoRoomError, UnknownJobError
from ina.controller.jobs import Endpoint, Job, JobEvent, JobState
from ina.controller.memory import MemoryPolicy
from ina.protocol.spec import MAX_WORKERS

MAX_NAME_CHARS = 200


class Registry:
    """The jobs that exist. ``job_numbers`` are handed out in turn, so that none returns soon."""

    def __init__(
        self,
        memory: MemoryPolicy,
        epochs: EpochCounter,
        job_numbers: range,
        *,
        unjoined_s: float = 60.0,
    ) -> None:
        self.memory = memory
        self.epochs = epochs
        self._numbers = deque(job_numbers)
        self._jobs: dict[str, Job] = {}
        self._unjoined_s = unjoined_s

    def __iter__(self) -> Iterator[Job]:
        return iter(list(self._jobs.values()))

    def __len__(self) -> int:
        return len(self._jobs)

    def get(self, name: str) -> Job:
        """Returns the job called ``name``; raises :class:`UnknownJobError`."""
        try:
            return self._jobs[name]
        except KeyError:
            raise UnknownJobError(f"no job is called {name!r}") from None

    def create(self, name: str, world_size: int, slots: int, now_s: float) -> Job:
        """Returns the joining job ``name``, which is made if there is none.

        Raises:
            JobRequestError: the request itself is wrong.
            JobConflictError: a job of this name has another size, or runs already.
            NoRoomError: all slots, or all job numbers, are in use.
        """
        self.expire(now_s)
        if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
            raise JobRequestError(
                f"job name {name[:MAX_NAME_CHARS]!r}: not 1 to {MAX_NAME_CHARS} printable"
                " characters"
            )
        if not 1 <= world_size <= MAX_WORKERS:
            raise JobRequestError(
                f"job {name!r}: {world_size} workers: one switch sums 1 to {MAX_WORKERS}"
                f" (the packet's bitmap of workers has {MAX_WORKERS} bits)"
            )
        job = self._jobs.get(name)
        if job is not None:
            if job.state is not JobState.JOINING:
                raise JobConflictError(f"the name {name!r} is in use: {_who(job)}")
            if job.world_size != world_size:
                raise JobConflictError(
                    f"job {name!r} was created with {job.world_size} workers, not {world_size}"
                )
            return job
        if not self._numbers:
            raise NoRoomError(f"job {name!r}: all {len(self._jobs)} job numbers are in use")
        memory = self.memory.take(name, slots)
        job = Job(name, self._numbers.popleft(), world_size, memory, now_s)
        self._jobs[name] = job
        return job

    def join(self, name: str, rank: int, endpoint: Endpoint) -> Job:
        """Adds a worker. The last one moves the job to STARTING and gives it its epoch.

        Raises :class:`UnknownJobError`, :class:`JobRequestError` (rank), :class:`JobConflictError`
        (rank or address taken, job runs already).
        """
        job = self.get(name)
        if rank >= job.world_size:
            raise JobRequestError(f"job {name!r} has ranks 0 to {job.world_size - 1}, not {rank}")
        if rank in job.members:
            raise JobConflictError(
                f"job {name!r}: rank {rank} has joined already, from {job.members[rank]}"
            )
        if job.state is not JobState.JOINING:
            raise JobConflictError(f"job {name!r} cannot be joined: {_who(job)}")
        for other, member in job.members.items():
            if (member.address, member.udp_port) == (endpoint.address, endpoint.udp_port):
                raise JobConflictError(
                    f"job {name!r}: rank {rank} has the address of rank {other}, {member}"
                )
        job.members[rank] = endpoint
        if not job.missing():
            job.on(JobEvent.COMPLETE)
            job.epoch = self.epochs.next()
        return job

    def withdraw(self, job: Job, rank: int) -> bool:
        """Takes back the join of a worker that went away; the last one's ends the job (True)."""
        del job.members[rank]
        if job.members:
            return False
        self._end(job, JobEvent.ABANDONED)
        return True

    def abandon(self, job: Job) -> None:
        """Ends a joining job for all its workers."""
        job.members.clear()
        self._end(job, JobEvent.ABANDONED)

    def installed(self, job: Job) -> None:
        """The switch has the job's entries."""
        job.on(JobEvent.INSTALLED)

    def failed(self, job: Job) -> None:
        """The job cannot start; its entries are to be removed, then :meth:`removed`."""
        job.members.clear()
        job.on(JobEvent.FAILED)

    def leave(self, name: str, rank: int, epoch: int) -> Job | None:
        """Removes a worker; returns its job, or None if that rank of that epoch is gone already."""
        job = self._jobs.get(name)
        if job is None or job.epoch != epoch or rank not in job.members:
            return None
        if job.state not in (JobState.RUNNING, JobState.LEAVING):
            return None
        del job.members[rank]
        job.on(JobEvent.LEFT)
        return job

    def removed(self, job: Job) -> None:
        """The switch has none of the job's entries: frees its slots and number."""
        self._end(job, JobEvent.REMOVED)

    def expire(self, now_s: float) -> None:
        """Ends jobs that were created but that no worker has joined since."""
        for job in self:
            idle = job.state is JobState.JOINING and not job.members
            if idle and now_s - job.created_s >= self._unjoined_s:
                self._end(job, JobEvent.ABANDONED)

    def _end(self, job: Job, event: JobEvent) -> None:
        job.on(event)
        del self._jobs[job.name]
        self.memory.give_back(job.memory)
        self._numbers.append(job.number)


def _who(job: Job) -> str:
    ranks = ", ".join(map(str, sorted(job.members))) or "none"
    return f"it is {job.state.value} (epoch {job.epoch}, ranks here: {ranks})"
