"""All jobs of a controller: admission, names, numbers, trees of switches. No I/O, no clock.

Every method that changes something either does it wholly or raises and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from ina import modes
from ina.controller.errors import JobConflictError, NoRoomError, UnknownJobError
from ina.controller.job import Job, JobEvent, JobSpec, JobState, who_sends_to_switches
from ina.controller.jobs import tokens
from ina.controller.jobs.admission import Admission, check_same, check_token, who
from ina.controller.jobs.numbers import EpochCounter, JobNumbers
from ina.controller.jobs.placement import (
    Islands,
    Placement,
    check_forest,
    check_pipes,
    check_room,
    first_with_room,
    slots_by_switch,
    window,
)
from ina.controller.jobs.room import Room
from ina.controller.jobs.site import ControllerSite
from ina.controller.surroundings import OWN_SURROUNDINGS, Surroundings
from ina.controller.switches.capacity import Capacity
from ina.protocol.spec import MAX_WORKERS, MAX_WORLD_SIZE
from ina.protocol.verify import usual_verify
from ina.trees import host_nodes
from ina.trees.endpoint import Endpoint
from ina.trees.errors import JobRequestError
from ina.trees.forest import Forest, forest_of
from ina.trees.mapping import Mapping as JobMapping
from ina.trees.slots import SlotRange
from ina.trees.tree import single

MAX_NAME_CHARS = 200


class Registry:
    """The jobs that exist. ``job_numbers`` are handed out in turn, so that none returns soon."""

    def __init__(
        self,
        switches: Mapping[str, Capacity],
        epochs: EpochCounter,
        job_numbers: range,
        *,
        admission: Admission | None = None,
        site: ControllerSite | None = None,
        placement: Callable[[Registry], Placement] = Islands,
        room: Callable[[Registry], Room] = lambda _: Room(),
        surroundings: Surroundings = OWN_SURROUNDINGS,
    ) -> None:
        """``site``: without, jobs bring their aggregators. ``placement`` and ``room`` are made
        for the registry, which they may keep.
        """
        self.switches = dict(switches)
        """What jobs can have on each, by its name, in the order of the configuration."""
        self.epochs = epochs
        self.site = site or ControllerSite(self.switches)
        self.admission = admission or Admission({})
        self.numbers = JobNumbers(job_numbers, self._foreign_numbers)
        """Those that are left."""
        self._jobs: dict[str, Job] = {}
        self._surroundings = surroundings
        self.room = room(self)
        """Who says how many slots jobs get, and who waits for them."""
        self.placement = placement(self)
        """Who finds jobs' trees."""

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

    def create(self, asked: JobSpec, now_s: float) -> Job:
        """Returns the joining job of this name, which is made if there is none.

        Where trees are not known early, it has neither them nor slots before :meth:`place`.

        Raises:
            JobRequestError: the request itself is wrong, or the job's mode verifies no sums.
            TenantError: there is no such tenant.
            JobConflictError: a job of this name has another size, tenant, mode or way to verify
                sums, or runs already.
            JobTokenError: the job was created with another token.
            NoRoomError: all slots, all job numbers or the tenant's quota are in use.
        """
        self.expire(now_s)
        self._check_request(asked)
        name, owner = asked.name, self.admission.tenant(asked.name, asked.tenant)
        job = self._jobs.get(name)
        if job is not None:
            check_same(job, replace(asked, tenant=owner))
            return job
        spec = self.granted(asked)
        why = modes.of(spec.mode).refuses.get("verify")
        if why is not None and spec.verify not in (None, "off"):
            raise JobRequestError(
                f"job {name!r}: mode {spec.mode!r}, verify {spec.verify!r}: {why}"
            )
        self._check_quota(spec, None if self.room.takes_what_is_left else spec.slots)
        why_not = f"all {len(self._jobs)} job numbers are in use"
        (number,) = self.numbers.take(name, 1, why_not)
        job = Job(
            spec,
            number,
            now_s,
            created_unix_s=self._surroundings.unix_s(),
            token_hash=tokens.hash_token(asked.token, self._surroundings.token_bytes),
            key_seed=tokens.new_key_seed(self._surroundings.token_bytes),
        )
        if self.placement.is_known_early:
            try:
                self._place_early(job)
            except (JobRequestError, NoRoomError):
                self.numbers.give_back([number])
                raise
        self._jobs[name] = job
        return job

    def granted(self, asked: JobSpec) -> JobSpec:
        """What a job would be created with.

        Raises :class:`TenantError`; :class:`JobRequestError`: there is no such mode.
        """
        owner = self.admission.tenant(asked.name, asked.tenant)
        return replace(
            asked,
            tenant=owner,
            priority=self.admission.priority(owner, asked.priority),
            mode=self.site.mode(asked.name, asked.mode),
            token="",
        )

    def _place_early(self, job: Job) -> None:
        spec, islands = job.spec, self.site.islands(job.name, job.mode)
        slots = self._slots_for(job, ())
        is_sized = modes.of(job.mode).is_sized
        switch = first_with_room(job.name, slots, islands, is_sized=is_sized)
        alone = forest_of(single(switch, spec.contributions or spec.world_size))
        forest = self.site.forest(job, alone, self.placement.port_to)
        self._check_forest_quota(job, forest, slots)
        self._give(job, forest, slots)

    def _slots_for(self, job: Job, switches: Sequence[str]) -> int:
        """To take at each of these; none: at any one."""
        is_sized = modes.of(job.mode).is_sized
        return self.room.sized(job, switches) if is_sized else job.spec.slots

    def place(self, job: Job) -> None:
        """Gives a job its trees, slots on each of its switches if it has none yet, and its epoch.

        All its ranks have joined. It moves to STARTING.

        Raises:
            JobRequestError: there are no trees for it, or it asks for more than a switch grants,
                or for less than its trees need.
            JobPipesError: some of its packets would meet in different pipes of a switch.
            NoRoomError: a switch has no room, and which; or the tenant's quota is in use.
        """
        forest = self._forest_of(job)
        if job.placed is None:
            slots = self._slots_for(job, forest.switches)
            self._check_forest_quota(job, forest, slots)
            check_room(job.name, slots, forest, self.switches)
            self._give(job, forest, slots)
        job.mapping.forest = forest
        self._complete(job)

    def victims(self, asked: JobSpec, slots: int) -> list[Job]:
        """Whom to end so that :meth:`create`, which found no room, finds it; [] if nobody.

        All on one switch: the first where it helps. ``slots``: without which it cannot begin.
        Raises what :meth:`create` raises when the reason is another than room on the switch.
        """
        spec = self.granted(asked)
        has_cost = self.placement.is_known_early or not self.room.takes_what_is_left
        self._check_quota(spec, slots if has_cost else None)
        numbers_left = self.numbers.any_left()
        if not self.placement.is_known_early:  # room on switches is looked for when all have joined
            return self.admission.victims(spec.priority, self._jobs.values(), bool)
        if not modes.of(spec.mode).is_sized:
            return []  # it shares slots; an aggregator that is full is no reason to end a job
        for switch in self.site.islands(spec.name, spec.mode):
            alone = forest_of(single(switch, spec.contributions or spec.world_size))
            found = self._victims(
                *(spec.name, slots, spec.priority, alone), numbers_left=numbers_left
            )
            if found:
                return found
        return []

    def victims_of(self, job: Job) -> list[Job]:
        """Whom to end so that :meth:`place`, which found no room, finds it; [] if nobody.

        Raises what :meth:`place` raises when the reason is another than room on the switches.
        """
        forest = self._forest_of(job)
        if not self.room.takes_what_is_left:
            self._check_forest_quota(job, forest, job.spec.slots)
        return self._victims(job.name, job.spec.slots, job.priority, forest, numbers_left=True)

    def _forest_of(self, job: Job) -> Forest:
        """What :meth:`place` gives it if there is room; raises what it raises otherwise."""
        assert not job.missing()
        host_nodes.check_nodes(job.name, job.members)
        forest = self.placement.forest(job.name, who_sends_to_switches(job.members))
        forest = self.site.forest(job, forest, self.placement.port_to)
        forest = self.with_host_nodes(job, forest)
        check_forest(job.name, forest, self.switches)
        check_pipes(job, forest, self.switches)
        return forest

    def _check_forest_quota(self, job: Job, forest: Forest, slots: int) -> None:
        own = {}
        if modes.of(job.mode).is_sized:
            own = slots_by_switch(job.name, slots, forest, self.switches)
        cost = {it: self.switches[it].memory.cost(job.name, its) for it, its in own.items()}
        self.admission.check_quota(job.spec, cost, self._others(job))

    def _others(self, job: Job) -> list[Job]:
        return [other for other in self._jobs.values() if other is not job]

    def _victims(
        self, name: str, slots: int, priority: int, forest: Forest, *, numbers_left: bool
    ) -> list[Job]:
        own = slots_by_switch(name, slots, forest, self.switches)

        def fits(gone: Sequence[Job]) -> bool:
            return (numbers_left or bool(gone)) and all(
                self.switches[it].memory.fits(
                    *(name, its),
                    [had.memory[it] for job in gone for had in job.mappings if it in had.memory],
                )
                for it, its in own.items()
            )

        there = [job for job in self._jobs.values() if not own.keys().isdisjoint(job.switches)]
        return self.admission.victims(priority, there, fits)

    def adopt(self, job: Job) -> None:
        """Takes a job as it was before the controller started: its name, number and slots.

        Raises :class:`JobConflictError`, :class:`NoRoomError` if another has one of them.
        Its slots must be on some of ``switches``.
        """
        if job.name in self._jobs or not self.numbers.are_free(job.numbers):
            raise JobConflictError(f"job {job.name!r}: name or number {job.number} is in use")
        claimed: list[tuple[Capacity, SlotRange, bool]] = []
        try:
            both = job.mappings
            for mapping, other in zip(both, reversed(both), strict=True):
                for switch, memory in mapping.memory.items():
                    over = other.memory.get(switch) if other is not mapping else None
                    capacity, shared = self.switches[switch], mapping.shares_slots_of(switch)
                    capacity.claim(memory, is_shared=shared, over=over)
                    claimed.append((capacity, memory, shared))
        except NoRoomError:
            for capacity, memory, shared in claimed:
                capacity.give_back(memory, is_shared=shared)
            raise
        self.numbers.claim(job.numbers)
        self._jobs[job.name] = job

    def join(self, name: str, rank: int, endpoint: Endpoint, *, token: str = "") -> Job:
        """Adds a worker. After the last one, :meth:`place` is next.

        Raises :class:`UnknownJobError`, :class:`JobTokenError`, :class:`JobRequestError` (rank),
        :class:`JobConflictError` (rank or address taken, job runs already).
        """
        job = self.get(name)
        check_token(job, token)
        if rank >= job.world_size:
            raise JobRequestError(f"job {name!r} has ranks 0 to {job.world_size - 1}, not {rank}")
        if rank in job.members:
            raise JobConflictError(
                f"job {name!r}: rank {rank} has joined already, from {job.members[rank]}"
            )
        if job.state is not JobState.JOINING:
            raise JobConflictError(f"job {name!r} cannot be joined: {who(job)}")
        for other, member in job.members.items():
            # What adds up on a host has its workers at addresses of its own making.
            seen = (member.node, member.peer.admits)
            if seen == (endpoint.node, endpoint.peer.admits):
                raise JobConflictError(
                    f"job {name!r}: rank {rank} has the address of rank {other}, {member}"
                )
        job.members[rank] = endpoint
        return job

    def with_host_nodes(self, job: Job, forest: Forest) -> Forest:
        """With nodes on hosts of its workers below. Raises :class:`JobRequestError`."""
        try:
            trees = tuple(host_nodes.with_host_nodes(tree, job.members) for tree in forest)
            return Forest(trees, forest.shares)
        except JobRequestError as error:
            raise JobRequestError(f"job {job.name!r}: {error}") from None

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

    def release(self, job: Job, switch: str) -> None:
        """One of a job's switches has none of its entries any more: frees its slots there."""
        for mapping in job.mappings:
            if switch in mapping.memory:
                self.give_back(mapping, switch)

    def give_back(self, mapping: JobMapping, switch: str) -> None:
        """A switch has nothing of a mapping any more: frees its slots there."""
        is_shared = mapping.shares_slots_of(switch)
        self.switches[switch].give_back(mapping.memory.pop(switch), is_shared=is_shared)

    def removed(self, job: Job) -> None:
        """No switch has any of the job's entries: frees its slots and number."""
        self._end(job, JobEvent.REMOVED)

    def rename(self, job: Job, name: str) -> None:
        """Gives it another name, which no job has."""
        self._jobs[name] = self._jobs.pop(job.name)
        job.spec = replace(job.spec, name=name)

    def expire(self, now_s: float) -> None:
        """Ends jobs that were created but that no worker has joined since."""
        for job in self:
            idle = job.state is JobState.JOINING and not job.members
            if idle and now_s - job.created_s >= self.admission.unjoined_s:
                self._end(job, JobEvent.ABANDONED)

    def _end(self, job: Job, event: JobEvent) -> None:
        job.on(event)
        del self._jobs[job.name]
        for switch in job.switches:
            self.release(job, switch)
        self.numbers.give_back(job.numbers)

    def _give(self, job: Job, forest: Forest, slots: int) -> None:
        """The trees, and slots on each of their switches; of several, all have room.

        Raises :class:`NoRoomError`: one that is alone has none, or no job number is left.
        """
        left = self.admission.slots_left(job.tenant, self._others(job))
        why_not = "no job number is left for another tree"
        more = self.numbers.take(job.name, len(forest) - 1, why_not)
        try:
            taken = self.site.take(job, forest, slots, left)
        except (JobRequestError, NoRoomError):
            self.numbers.give_back(more)
            raise
        most = window(forest, taken, self.switches)
        job.placed = JobMapping(0, (job.number, *more), forest, taken, most, mode=job.mode)
        self.room.granted(job)

    def _complete(self, job: Job) -> None:
        job.on(JobEvent.COMPLETE)
        if job.verify is None:
            senders = who_sends_to_switches(job.members).values()
            verify = usual_verify(sender.peer.address for sender in senders)
            if "verify" in modes.of(job.mode).refuses:
                verify = "off"
            job.spec = replace(job.spec, verify=verify)
        job.epoch = job.mapping.epoch = self.epochs.next()

    def unix_s(self) -> float:
        """The time of day."""
        return self._surroundings.unix_s()

    def usual_slots(self, job: Job, switch: str) -> int:
        """What a job that has none yet gets at this switch if there is room."""
        return job.spec.slots or self.switches[switch].memory.cost(job.name, 0)

    def slots_used(self) -> int:
        """Slots of all switches that some job has, or may claim."""
        return sum(capacity.used() for capacity in self.switches.values())

    def slots_total(self) -> int:
        """Slots of all switches."""
        return sum(capacity.total for capacity in self.switches.values())

    def _check_quota(self, spec: JobSpec, slots: int | None) -> None:
        """``slots``: that it would have; None: as many as the quota leaves."""
        # One policy shares out all switches, so a job costs the same on each. What it may claim of
        # slots that are shared, is as much as the quota leaves.
        memory = next(iter(self.switches.values())).memory
        has_cost = modes.of(spec.mode).is_sized and slots is not None
        own = {"": memory.cost(spec.name, slots or 0)} if has_cost else {}
        self.admission.check_quota(spec, own, self._jobs.values())

    def _check_request(self, asked: JobSpec) -> None:
        name, workers = asked.name, asked.world_size
        contributions = asked.contributions or workers
        if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
            raise JobRequestError(
                f"job name {name[:MAX_NAME_CHARS]!r}: not 1 to {MAX_NAME_CHARS} printable"
                " characters"
            )
        if self.placement.is_known_early and not 1 <= contributions <= MAX_WORKERS:
            what = "contributions of hosts" if contributions != workers else "workers"
            raise JobRequestError(
                f"job {name!r}: {contributions} {what}: one switch sums 1 to {MAX_WORKERS}"
                f" (the packet's bitmap of workers has {MAX_WORKERS} bits)"
            )
        if not 1 <= workers <= MAX_WORLD_SIZE:
            raise JobRequestError(
                f"job {name!r}: {workers} workers: a tree of switches sums 1 to {MAX_WORLD_SIZE}"
            )
        if contributions > workers:
            raise JobRequestError(
                f"job {name!r}: {contributions} contributions of {workers} workers: at most one of"
                " each"
            )

    def _foreign_numbers(self) -> set[int]:
        # A job has its numbers wherever it is.
        return set().union(*(capacity.foreign_numbers for capacity in self.switches.values()))
