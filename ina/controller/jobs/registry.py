"""All jobs of a controller: admission, names, numbers, trees of switches. No I/O, no clock.

Every method that changes something either does it wholly or raises and changes nothing.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from ina.controller.errors import (
    HostNodesError,
    JobConflictError,
    JobRequestError,
    JobTokenError,
    NoRoomError,
    UnknownJobError,
)
from ina.controller.job import Endpoint, Job, JobEvent, JobState, who_sends_to_switches
from ina.controller.jobs import tokens
from ina.controller.jobs.admission import Admission
from ina.controller.jobs.epochs import EpochCounter
from ina.controller.jobs.numbers import JobNumbers
from ina.controller.jobs.pipes import check_pipes, check_same_pipe
from ina.controller.jobs.placement import Placement, check_room, check_tree, first_with_room
from ina.controller.jobs.sharing import Sharing
from ina.controller.memory import SlotRange
from ina.controller.switches.capacity import Capacity
from ina.controller.topology.host_nodes import check_nodes, with_host_nodes
from ina.controller.topology.tree import Node, Tree, single
from ina.p4.catalogue import POOL
from ina.protocol.spec import MAX_WORKERS, MAX_WORLD_SIZE
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
        placement: Placement | None = None,
        sharing: Sharing | None = None,
        unix_clock: Callable[[], float] = time.time,
        token_bytes: tokens.RandomBytes = secrets.token_bytes,
    ) -> None:
        """``placement``: of a fabric; None: each switch is an island. ``sharing``: without, jobs
        bring their aggregators.
        """
        self.switches = dict(switches)
        """What jobs can have on each, by its name, in the order of the configuration."""
        self.epochs = epochs
        self.placement = placement
        self.sharing = sharing or Sharing(self.switches)
        self.admission = admission or Admission({})
        self.sized: Callable[[Job, Sequence[str]], int] | None = None
        """Of a fabric: how many slots a job takes at each of these; None: those it asked for."""
        self.numbers = JobNumbers(job_numbers, self._foreign_numbers)
        """Those that are left."""
        self._jobs: dict[str, Job] = {}
        self._unjoined_s = unjoined_s
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
        contributions: int = 0,
        mode: str = "",
    ) -> Job:
        """Returns the joining job ``name``, which is made if there is none.

        In a fabric it has neither a tree nor slots before :meth:`place`. ``contributions``: those
        to a sum that reach switches, where hosts add up what their workers send; 0: ``world_size``.
        ``mode``: empty: as another of its workers has asked, or as is usual.

        Raises:
            JobRequestError: the request itself is wrong.
            TenantError: there is no such tenant.
            JobConflictError: a job of this name has another size, tenant, mode or way to verify
                sums, or runs already.
            JobTokenError: the job was created with another token.
            NoRoomError: all slots, all job numbers or the tenant's quota are in use.
        """
        self.expire(now_s)
        contributions = contributions or world_size
        self._check_request(name, world_size, contributions)
        owner = self.admission.tenant(name, tenant)
        job = self._jobs.get(name)
        if job is not None:
            _check_same(job, world_size, owner, token, verify, mode)
            return job
        mode = self.sharing.mode(name, mode)
        self._check_quota(name, owner, world_size, slots, mode)
        why_not = f"all {len(self._jobs)} job numbers are in use"
        (number,) = self.numbers.take(name, 1, why_not)
        job = Job(
            name,
            number,
            world_size,
            now_s,
            mode=mode,
            slots_asked=slots,
            tenant=owner,
            priority=self.admission.priority(owner, priority),
            created_unix_s=self._unix_clock(),
            token_hash=tokens.hash_token(token, self._token_bytes),
            key_seed=tokens.new_key_seed(self._token_bytes),
            verify=verify,
        )
        if self.placement is None:
            try:
                switch = first_with_room(name, slots, self.sharing.islands(name, mode), mode)
                self._give(job, self.sharing.tree(job, single(switch, contributions)), slots)
            except (JobRequestError, NoRoomError):
                self.numbers.give_back([number])
                raise
        self._jobs[name] = job
        return job

    def place(self, job: Job) -> None:
        """Gives a job of a fabric its tree, slots on each of its switches, and its epoch.

        All its ranks have joined. It moves to STARTING.

        Raises:
            JobRequestError: there is no tree for it, or it asks for more than a switch grants.
            JobPipesError: some of its packets would meet in different pipes of a switch.
            NoRoomError: a switch has no room, and which; or the tenant's quota is in use.
        """
        tree = self._tree_of(job)
        slots = job.slots_asked
        if self.sized is not None and job.mode == POOL:
            slots = self.sized(job, [node.switch for node in tree.switches])
        check_room(job.name, slots, tree, self.switches)
        self._give(job, tree, slots)
        self._complete(job)

    def victims(
        self,
        name: str,
        world_size: int,
        slots: int,
        *,
        tenant: str = "",
        priority: int = 0,
        contributions: int = 0,
        mode: str = "",
    ) -> list[Job]:
        """Whom to end so that :meth:`create`, which found no room, finds it; [] if nobody.

        All on one switch: the first where it helps.

        Raises what :meth:`create` raises when the reason is another than room on the switch.
        """
        owner = self.admission.tenant(name, tenant)
        mode = self.sharing.mode(name, mode)
        self._check_quota(name, owner, world_size, slots, mode)
        capped = self.admission.priority(owner, priority)
        numbers_left = self.numbers.any_left()
        if self.placement is not None:  # room on switches is looked for when all have joined
            return self.admission.victims(capped, self._jobs.values(), bool)
        if mode != POOL:
            return []  # it shares slots; an aggregator that is full is no reason to end a job
        for switch in self.sharing.islands(name, mode):
            tree = single(switch, contributions or world_size)
            found = self._victims(name, slots, capped, tree, numbers_left=numbers_left)
            if found:
                return found
        return []

    def victims_of(self, job: Job) -> list[Job]:
        """Whom to end so that :meth:`place`, which found no room, finds it; [] if nobody.

        Raises what :meth:`place` raises when the reason is another than room on the switches.
        """
        tree = self._tree_of(job)
        return self._victims(job.name, job.slots_asked, job.priority, tree, numbers_left=True)

    def _tree_of(self, job: Job) -> Tree:
        """What :meth:`place` gives it if there is room; raises what it raises otherwise."""
        assert self.placement is not None
        assert not job.missing()
        check_nodes(job.name, job.members)
        tree = self.placement.tree(job.name, who_sends_to_switches(job.members))
        tree = self.sharing.tree(job, tree, self.placement.port_to)
        tree = self._with_host_nodes(job, tree)
        check_tree(job.name, tree, self.switches)
        nodes = tree.switches
        for node in nodes:
            check_pipes(job, tree, node, self.switches[node.switch].pipe_of)
        names = [node.switch for node in nodes] if job.mode == POOL else []
        costs = (self.switches[it].memory.cost(job.name, job.slots_asked) for it in names)
        self.admission.check_quota(
            *(job.name, job.tenant, sum(costs), job.world_size), self._others(job)
        )
        return tree

    def _others(self, job: Job) -> list[Job]:
        return [other for other in self._jobs.values() if other is not job]

    def _victims(
        self, name: str, slots: int, priority: int, tree: Tree, *, numbers_left: bool
    ) -> list[Job]:
        nodes = [node.switch for node in tree.switches if not node.is_shared]

        def fits(gone: Sequence[Job]) -> bool:
            return (numbers_left or bool(gone)) and all(
                self.switches[it].memory.fits(
                    *(name, slots),
                    [had.memory[it] for job in gone for had in job.mappings if it in had.memory],
                )
                for it in nodes
            )

        there = [job for job in self._jobs.values() if not set(nodes).isdisjoint(job.switches)]
        return self.admission.victims(priority, there, fits)

    def adopt(self, job: Job) -> None:
        """Takes a job as it was before the controller started: its name, number and slots.

        Raises :class:`JobConflictError`, :class:`NoRoomError` if another has one of them.
        Its slots must be on some of ``switches``.
        """
        if job.name in self._jobs or not self.numbers.are_free(job.numbers):
            raise JobConflictError(f"job {job.name!r}: name or number {job.number} is in use")
        claimed: list[tuple[Capacity, SlotRange, Node]] = []
        try:
            both = job.mappings
            for mapping, other in zip(both, reversed(both), strict=True):
                for switch, memory in mapping.memory.items():
                    over = other.memory.get(switch) if other is not mapping else None
                    capacity, node = self.switches[switch], mapping.tree[switch]
                    capacity.claim(memory, node, over=over)
                    claimed.append((capacity, memory, node))
        except NoRoomError:
            for capacity, memory, node in claimed:
                capacity.give_back(memory, node)
            raise
        self.numbers.claim(job.numbers)
        self._jobs[job.name] = job

    def join(self, name: str, rank: int, endpoint: Endpoint, *, token: str = "") -> Job:
        """Adds a worker. The last one moves the job to STARTING and gives it its epoch; where
        switches are a fabric, :meth:`place` does that next.

        Raises :class:`UnknownJobError`, :class:`JobTokenError`, :class:`JobRequestError` (rank),
        :class:`JobConflictError` (rank or address taken, job runs already),
        :class:`JobPipesError`, :class:`HostNodesError` (nobody can join the job any more: end it).
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
            # What adds up on a host has its workers at addresses of its own making.
            seen = (member.node, member.address, member.udp_port)
            if seen == (endpoint.node, endpoint.address, endpoint.udp_port):
                raise JobConflictError(
                    f"job {name!r}: rank {rank} has the address of rank {other}, {member}"
                )
        if job.tree is not None:
            check_same_pipe(job, rank, endpoint, self.switches[job.island].pipe_of)
        job.members[rank] = endpoint
        if job.tree is not None and not job.missing():
            self._add_host_nodes(job)
            self._complete(job)
        return job

    def _add_host_nodes(self, job: Job) -> None:
        """Of a job at one switch: raises :class:`HostNodesError`."""
        try:
            check_nodes(job.name, job.members)
            root = Node(job.island, tuple(sorted(who_sends_to_switches(job.members))))
            job.tree = self._with_host_nodes(job, self.sharing.tree(job, Tree((root,))))
        except JobRequestError as error:
            raise HostNodesError(str(error)) from None

    def _with_host_nodes(self, job: Job, tree: Tree) -> Tree:
        try:
            return with_host_nodes(tree, job.members)
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
                taken = mapping.memory.pop(switch)
                self.switches[switch].give_back(taken, mapping.tree[switch])

    def removed(self, job: Job) -> None:
        """No switch has any of the job's entries: frees its slots and number."""
        self._end(job, JobEvent.REMOVED)

    def rename(self, job: Job, name: str) -> None:
        """Gives it another name, which no job has."""
        job.name, former = name, job.name
        self._jobs[name] = self._jobs.pop(former)

    def expire(self, now_s: float) -> None:
        """Ends jobs that were created but that no worker has joined since."""
        for job in self:
            idle = job.state is JobState.JOINING and not job.members
            if idle and now_s - job.created_s >= self._unjoined_s:
                self._end(job, JobEvent.ABANDONED)

    def _end(self, job: Job, event: JobEvent) -> None:
        job.on(event)
        del self._jobs[job.name]
        for switch in job.switches:
            self.release(job, switch)
        self.numbers.give_back(job.numbers)

    def _give(self, job: Job, tree: Tree, slots: int) -> None:
        """The tree, and slots on each of its switches; of several, all have room.

        Raises :class:`NoRoomError`: one that is alone has none, or no job number is left.
        """
        left = self.admission.slots_left(job.tenant, self._others(job))
        why_not = "no job number is left for another aggregator"
        more = self.numbers.take(job.name, len(tree.roots) - 1, why_not)
        try:
            taken = self.sharing.take(job, tree, slots, left)
        except (JobRequestError, NoRoomError):
            self.numbers.give_back(more)
            raise
        job.tree, job.memory, job.further_numbers = tree, taken, more
        job.window = self.window(tree, taken)

    def window(self, tree: Tree, memory: Mapping[str, SlotRange]) -> int:
        """Packets in flight that a worker of a job with these slots may have."""
        roots = {root.switch for root in tree.roots}
        return min(
            self.switches[name].window(taken) * (len(roots) if name in roots else 1)
            for name, taken in memory.items()
        )

    def _complete(self, job: Job) -> None:
        job.on(JobEvent.COMPLETE)
        if job.verify is None:
            senders = who_sends_to_switches(job.members).values()
            job.verify = usual_verify(sender.address for sender in senders)
        job.epoch = self.epochs.next()

    def unix_s(self) -> float:
        """The time of day."""
        return self._unix_clock()

    def usual_slots(self, job: Job, switch: str) -> int:
        """What a job that has none yet gets at this switch if there is room."""
        return job.slots_asked or self.switches[switch].memory.cost(job.name, 0)

    def slots_used(self) -> int:
        """Slots of all switches that some job has, or may claim."""
        return sum(capacity.used() for capacity in self.switches.values())

    def slots_total(self) -> int:
        """Slots of all switches."""
        return sum(capacity.total for capacity in self.switches.values())

    def _check_quota(self, name: str, tenant: str, world_size: int, slots: int, mode: str) -> None:
        # One policy shares out all switches, so a job costs the same on each. What it may claim of
        # slots that are shared, is as much as the quota leaves.
        memory = next(iter(self.switches.values())).memory
        cost = memory.cost(name, slots) if mode == POOL else 0
        self.admission.check_quota(name, tenant, cost, world_size, self._jobs.values())

    def _check_request(self, name: str, world_size: int, contributions: int) -> None:
        if not 1 <= len(name) <= MAX_NAME_CHARS or not name.isprintable():
            raise JobRequestError(
                f"job name {name[:MAX_NAME_CHARS]!r}: not 1 to {MAX_NAME_CHARS} printable"
                " characters"
            )
        if self.placement is None and not 1 <= contributions <= MAX_WORKERS:
            what = "contributions of hosts" if contributions != world_size else "workers"
            raise JobRequestError(
                f"job {name!r}: {contributions} {what}: one switch sums 1 to {MAX_WORKERS}"
                f" (the packet's bitmap of workers has {MAX_WORKERS} bits)"
            )
        if not 1 <= world_size <= MAX_WORLD_SIZE:
            raise JobRequestError(
                f"job {name!r}: {world_size} workers: a tree of switches sums 1 to {MAX_WORLD_SIZE}"
            )
        if contributions > world_size:
            raise JobRequestError(
                f"job {name!r}: {contributions} contributions of {world_size} workers: at most one"
                " of each"
            )

    def _foreign_numbers(self) -> set[int]:
        # A job has its numbers wherever it is.
        return set().union(*(capacity.foreign_numbers for capacity in self.switches.values()))


def _check_same(
    job: Job, world_size: int, tenant: str, token: str, verify: Verify | None, mode: str
) -> None:
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
    if mode and job.mode != mode:
        raise JobConflictError(f"job {job.name!r} has mode {job.mode!r}, not {mode!r}")
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
