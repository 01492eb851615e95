"""All jobs of one switch: admission, names, numbers. No I/O; time is passed in.

Every method that changes something either does it wholly or raises and changes nothing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

from ina.controller.errors import (
    JobConflictError,
    JobPipesError,
    JobRequestError,
    JobTokenError,
    NoRoomError,
    UnknownJobError,
)
from ina.controller.job import Endpoint, Job, JobEvent, JobState
from ina.controller.jobs import tokens
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.epochs import EpochCounter
from ina.controller.memory import MemoryPolicy, SlotRange
from ina.protocol.spec import MAX_WORKERS

MAX_NAME_CHARS = 200

PipeOf = Callable[[int], int]
"""The pipe of a port's number."""


def one_pipe(port: int) -> int:
    """Of switches whose registers serve all their ports."""
    return 0


class Registry:
    """The jobs that exist. ``job_numbers`` are handed out in turn, so that none returns soon."""

    def __init__(
        self,
        memory: MemoryPolicy,
        epochs: EpochCounter,
        job_numbers: range,
        *,
        unjoined_s: float = 60.0,
        admission: Admission | None = None,
        max_window: int = 0,
        pipe_of: PipeOf = one_pipe,
        unix_clock: Callable[[], float] = time.time,
    ) -> None:
        self.memory = memory
        self.epochs = epochs
        self.admission = admission or Admission({})
        self._numbers = deque(job_numbers)
        self._foreign_numbers: set[int] = set()
        self._jobs: dict[str, Job] = {}
        self._unjoined_s = unjoined_s
        self._max_window = max_window
        self._pipe_of = pipe_of
        self._unix_clock = unix_clock

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

    def create(
        self,
        name: str,
        world_size: int,
        slots: int,
        now_s: float,
        *,
        tenant: str = "",
        priority: int = 0,
        token: str = "",
    ) -> Job:
        """Returns the joining job ``name``, which is made if there is none.

        Raises:
            JobRequestError: the request itself is wrong.
            TenantError: there is no such tenant.
            JobConflictError: a job of this name has another size or tenant, or runs already.
            JobTokenError: the job was created with another token.
            NoRoomError: all slots, all job numbers or the tenant's quota are in use.
        """
        self.expire(now_s)
        _check_request(name, world_size)
        owner = self.admission.tenant(name, tenant)
        job = self._jobs.get(name)
        if job is not None:
            _check_same(job, world_size, owner, token)
            return job
        cost = self.memory.cost(name, slots)
        self.admission.check_quota(name, owner, cost, world_size, self._jobs.values())
        number = self._free_number()
        if number is None:
            raise NoRoomError(f"job {name!r}: all {len(self._jobs)} job numbers are in use")
        memory = self.memory.take(name, slots)
        self._numbers.remove(number)
        job = self._jobs[name] = Job(
            name,
            number,
            world_size,
            memory,
            now_s,
            tenant=owner,
            priority=self.admission.priority(owner, priority),
            window=self._window(memory),
            created_unix_s=self._unix_clock(),
            token_hash=tokens.hash_token(token),
            key_seed=tokens.new_key_seed(),
        )
        return job

    def victims(
        self, name: str, world_size: int, slots: int, *, tenant: str = "", priority: int = 0
    ) -> list[Job]:
        """Whom to end so that :meth:`create`, which found no room, finds it; [] if nobody.

        Raises what :meth:`create` raises when the reason is another than room on the switch.
        """
        owner = self.admission.tenant(name, tenant)
        cost = self.memory.cost(name, slots)
        self.admission.check_quota(name, owner, cost, world_size, self._jobs.values())
        numbers_left = self._free_number() is not None

        def fits(gone: Iterable[Job]) -> bool:
            ranges = [job.memory for job in gone]
            return (numbers_left or bool(ranges)) and self.memory.fits(name, slots, ranges)

        capped = self.admission.priority(owner, priority)
        return self.admission.victims(capped, self._jobs.values(), fits)

    def adopt(self, job: Job) -> None:
        """Takes a job as it was before the controller started: its name, number and slots.

        Raises :class:`JobConflictError`, :class:`NoRoomError` if another has one of them.
        """
        if job.name in self._jobs or job.number not in self._numbers:
            raise JobConflictError(f"job {job.name!r}: name or number {job.number} is in use")
        self.memory.claim(job.memory)
        self._numbers.remove(job.number)
        self._jobs[job.name] = job

    def set_foreign(self, numbers: Iterable[int], slots: Iterable[range]) -> None:
        """Says which job numbers and slots entries of nobody's on the switch name.

        They are not handed out. Replaces what was said before.
        """
        self._foreign_numbers = set(numbers)
        self.memory.block(slots)

    def join(self, name: str, rank: int, endpoint: Endpoint, *, token: str = "") -> Job:
        """Adds a worker. The last one moves the job to STARTING and gives it its epoch.

        Raises :class:`UnknownJobError`, :class:`JobTokenError`, :class:`JobRequestError` (rank),
        :class:`JobConflictError` (rank or address taken, job runs already),
        :class:`JobPipesError` (nobody can join the job any more: end it).
        """
        job = self.get(name)
        _check_token(job, token)
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
        check_same_pipe(job, rank, endpoint, self._pipe_of)
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

    def end(self, job: Job) -> None:
        """A running or leaving job cannot go on; its entries are to be removed."""
        job.members.clear()
        job.on(JobEvent.ENDED)

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

    def _free_number(self) -> int | None:
        return next((n for n in self._numbers if n not in self._foreign_numbers), None)

    def _window(self, memory: SlotRange) -> int:
        # A lane is two slots, and sequence numbers wrap over lanes: a power of two of them.
        lanes = 1 << ((memory.slots // 2).bit_length() - 1)
        return min(lanes, self._max_window or lanes)


def _check_request(name: str, world_size: int) -> None:
    if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
        raise JobRequestError(
            f"job name {name[:MAX_NAME_CHARS]!r}: not 1 to {MAX_NAME_CHARS} printable characters"
        )
    if not 1 <= world_size <= MAX_WORKERS:
        raise JobRequestError(
            f"job {name!r}: {world_size} workers: one switch sums 1 to {MAX_WORKERS}"
            f" (the packet's bitmap of workers has {MAX_WORKERS} bits)"
        )


def _check_same(job: Job, world_size: int, tenant: str, token: str) -> None:
    """That another rank's CreateJob is of this job, and comes in time."""
    if job.state is not JobState.JOINING:
        raise JobConflictError(f"the name {job.name!r} is in use: {_who(job)}")
    _check_token(job, token)
    if job.world_size != world_size:
        raise JobConflictError(
            f"job {job.name!r} was created with {job.world_size} workers, not {world_size}"
        )
    if job.tenant != tenant:
        raise JobConflictError(f"job {job.name!r} is of tenant {job.tenant!r}, not {tenant!r}")


def _check_token(job: Job, token: str) -> None:
    if not tokens.token_matches(token, job.token_hash):
        has = "another join token" if job.token_hash else "no join token"
        raise JobTokenError(f"job {job.name!r} was created with {has}")


def _who(job: Job) -> str:
    ranks = ", ".join(map(str, sorted(job.members))) or "none"
    return f"it is {job.state.value} (epoch {job.epoch}, ranks here: {ranks})"


def check_same_pipe(job: Job, rank: int, endpoint: Endpoint, pipe_of: PipeOf) -> None:
    """Raises :class:`JobPipesError` if ``rank`` is in another pipe than those that have joined.

    A Tofino's registers are a pipe's own: what enters by port 4 (pipe 0) and by port 130 (pipe 1)
    is never summed in the same slot.
    """
    ports = {other: member.switch_port for other, member in job.members.items()}
    ports[rank] = endpoint.switch_port
    if len({pipe_of(port) for port in ports.values()}) == 1:
        return
    places = ", ".join(
        f"rank {who} behind port {port} (pipe {pipe_of(port)})"
        for who, port in sorted(ports.items())
    )
    raise JobPipesError(
        f"job {job.name!r}: its workers are in different pipes of the switch: {places}; a sum is in"
        " one pipe's registers, so all must be behind ports of the same pipe"
    )
