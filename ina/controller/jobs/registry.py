"""All jobs of a controller: admission, names, numbers, a switch each. No I/O; time is passed in.

Every method that changes something either does it wholly or raises and changes nothing.
"""

from __future__ import annotations

import secrets
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping

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
from ina.controller.jobs.placement import Placement, first_with_room
from ina.controller.switches.capacity import Capacity, PipeOf
from ina.protocol.spec import MAX_WORKERS
from ina.protocol.verify import Verify, usual_verify

MAX_NAME_CHARS = 200


class Registry:
    """The jobs that exist. ``job_numbers`` are handed out in turn, so that none returns soon."""

    def __init__(
        self,
        switches: Mapping[str, Capacity],
        epochs: EpochCounter,
        job_numbers: range,
        *,
        unjoined_s: float = 60.0,
        admission: Admission | None = None,
        place: Placement = first_with_room,
        unix_clock: Callable[[], float] = time.time,
        token_bytes: tokens.RandomBytes = secrets.token_bytes,
    ) -> None:
        self.switches = dict(switches)
        """What jobs can have on each, by its name, in the order of the configuration."""
        self.epochs = epochs
        self.admission = admission or Admission({})
        self._numbers = deque(job_numbers)
        self._jobs: dict[str, Job] = {}
        self._unjoined_s = unjoined_s
        self._place = place
        self._unix_clock = unix_clock
        self._token_bytes = token_bytes

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
        verify: Verify | None = None,
    ) -> Job:
        """Returns the joining job ``name``, which is made if there is none.

        Raises:
            JobRequestError: the request itself is wrong.
            TenantError: there is no such tenant.
            JobConflictError: a job of this name has another size, tenant or way to verify sums, or
                runs already.
            JobTokenError: the job was created with another token.
            NoRoomError: all slots, all job numbers or the tenant's quota are in use.
        """
        self.expire(now_s)
        _check_request(name, world_size)
        owner = self.admission.tenant(name, tenant)
        job = self._jobs.get(name)
        if job is not None:
            _check_same(job, world_size, owner, token, verify)
            return job
        self._check_quota(name, owner, world_size, slots)
        number = self._free_number()
        if number is None:
            raise NoRoomError(f"job {name!r}: all {len(self._jobs)} job numbers are in use")
        switch = self._place(name, slots, self.switches)
        capacity = self.switches[switch]
        memory = capacity.memory.take(name, slots)
        self._numbers.remove(number)
        job = self._jobs[name] = Job(
            name,
            number,
            world_size,
            memory,
            now_s,
            tenant=owner,
            switch=switch,
            priority=self.admission.priority(owner, priority),
            window=capacity.window(memory),
            created_unix_s=self._unix_clock(),
            token_hash=tokens.hash_token(token, self._token_bytes),
            key_seed=tokens.new_key_seed(self._token_bytes),
            verify=verify,
        )
        return job

    def victims(
        self, name: str, world_size: int, slots: int, *, tenant: str = "", priority: int = 0
    ) -> list[Job]:
        """Whom to end so that :meth:`create`, which found no room, finds it; [] if nobody.

        All on one switch: the first where it helps.

        Raises what :meth:`create` raises when the reason is another than room on the switch.
        """
        owner = self.admission.tenant(name, tenant)
        self._check_quota(name, owner, world_size, slots)
        numbers_left = self._free_number() is not None
        capped = self.admission.priority(owner, priority)
        for switch, capacity in self.switches.items():

            def fits(gone: Iterable[Job], capacity: Capacity = capacity) -> bool:
                ranges = [job.memory for job in gone]
                return (numbers_left or bool(ranges)) and capacity.memory.fits(name, slots, ranges)

            there = [job for job in self._jobs.values() if job.switch == switch]
            found = self.admission.victims(capped, there, fits)
            if found:
                return found
        return []

    def adopt(self, job: Job) -> None:
        """Takes a job as it was before the controller started: its name, number and slots.

        Raises :class:`JobConflictError`, :class:`NoRoomError` if another has one of them.
        Its switch must be one of ``switches``.
        """
        if job.name in self._jobs or job.number not in self._numbers:
            raise JobConflictError(f"job {job.name!r}: name or number {job.number} is in use")
        self.switches[job.switch].memory.claim(job.memory)
        self._numbers.remove(job.number)
        self._jobs[job.name] = job

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
        check_same_pipe(job, rank, endpoint, self.switches[job.switch].pipe_of)
        job.members[rank] = endpoint
        if not job.missing():
            job.on(JobEvent.COMPLETE)
            if job.verify is None:
                job.verify = usual_verify(member.address for member in job.members.values())
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
        self.switches[job.switch].memory.give_back(job.memory)
        self._numbers.append(job.number)

    def slots_used(self) -> int:
        """Slots of all switches that no other job can have now."""
        return sum(capacity.memory.used() for capacity in self.switches.values())

    def slots_total(self) -> int:
        """Slots of all switches."""
        return sum(capacity.memory.total for capacity in self.switches.values())

    def _check_quota(self, name: str, tenant: str, world_size: int, slots: int) -> None:
        # One policy shares out all switches, so a job costs the same on each.
        memory = next(iter(self.switches.values())).memory
        self.admission.check_quota(
            name, tenant, memory.cost(name, slots), world_size, self._jobs.values()
        )

    def _free_number(self) -> int | None:
        # A job has one number wherever it is.
        foreign = set().union(*(capacity.foreign_numbers for capacity in self.switches.values()))
        return next((n for n in self._numbers if n not in foreign), None)


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


def _check_same(job: Job, world_size: int, tenant: str, token: str, verify: Verify | None) -> None:
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
    if verify is not None and job.verify != verify:
        how = "by default" if job.verify is None else f"by {job.verify!r}"
        raise JobConflictError(
            f"job {job.name!r} verifies its sums {how}, not {verify!r}: all its workers must ask"
            " for the same"
        )


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
