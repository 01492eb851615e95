"""What a worker must know to take part in a job: its place in it, and where its switches are."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from ina import modes
from ina.congestion import Congestion
from ina.extension.host import RtoLimits, VerifyMode, WorkerConfig
from ina.host.errors import InvalidTicketError, WorldSizeError
from ina.host.trees import TreePlace, check_trees
from ina.p4.names import DEFAULT_MODE
from ina.protocol.peer import Peer
from ina.protocol.spec import MAX_WORLD_SIZE
from ina.protocol.verify import CHECK_KEY_BYTES, Verify, checked_verify

_log = logging.getLogger(__name__)

_NATIVE_MODES = {
    "off": VerifyMode.OFF,
    "accidents": VerifyMode.ACCIDENTS,
    "keyed": VerifyMode.KEYED,
}


def check_world(rank: int, world_size: int) -> None:
    """Raise WorldSizeError unless 0 <= rank < world_size <= 1024.

    How many of them its switches sum, 32 at one, is the controller's to say.
    """
    if world_size > MAX_WORLD_SIZE:
        raise WorldSizeError(
            f"world_size {world_size}: a job has at most {MAX_WORLD_SIZE} workers; sums of more"
            " would leave too few bits of their values"
        )
    if world_size < 1:
        raise WorldSizeError(f"world_size {world_size}: a job has at least one worker")
    if not 0 <= rank < world_size:
        raise WorldSizeError(f"rank {rank}: must be 0..{world_size - 1}")


def lanes_of(slots: int) -> int:
    """W: half of a job's slots, both versions together, rounded down to a power of two."""
    return 1 << (slots.bit_length() - 2)


@dataclass(frozen=True)
class Ticket:
    """One worker's place in one job, as the controller gives it. Immutable and picklable."""

    job_name: str
    epoch: int  # incarnation, 32 bits; the header carries the low 16
    rank: int
    world_size: int  # 1..1024: what a sum has parts of, and an average is divided by
    slots: int  # both versions (2 W), the same on all workers, 2..65536
    values_per_packet: int  # of the P4 build that the switch runs
    trees: tuple[TreePlace, ...]  # what the lanes are dealt to, in their order, at least one
    congestion: Congestion = field(default_factory=Congestion)
    mode: str = DEFAULT_MODE  # of the job, by this mapping of it
    verify: Verify = "off"  # how sums are verified, the same on all workers
    check_key: bytes = field(default=b"", repr=False)  # of verify "keyed": all workers', secret

    def __post_init__(self) -> None:
        check_world(self.rank, self.world_size)
        if self.mode not in modes.names():
            raise InvalidTicketError(
                f"job {self.job_name!r}: mode {self.mode!r}; workers speak"
                f" {' and '.join(modes.names())}"
            )
        checked_verify(f"job {self.job_name!r}: verify", self.verify)
        if self.verify == "keyed" and len(self.check_key) != CHECK_KEY_BYTES:
            raise InvalidTicketError(
                f"job {self.job_name!r}: check_key has {len(self.check_key)} bytes, verify 'keyed'"
                f" needs {CHECK_KEY_BYTES}"
            )
        for name, low, high in (
            ("epoch", 0, 0xFFFFFFFF),
            ("slots", 2, 0x10000),
            ("values_per_packet", 1, 0xFFF),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidTicketError(
                    f"job {self.job_name!r}: {name} is {value}, must be {low}..{high}"
                )
        if any(tree.owners for tree in self.trees) and not modes.of(self.mode).has_shapes:
            raise InvalidTicketError(
                f"job {self.job_name!r}: its trees have owners, and mode {self.mode!r} sums alone"
            )
        check_trees(
            f"job {self.job_name!r}",
            self.trees,
            self.lanes,
            rank=self.rank,
            world_size=self.world_size,
        )

    @property
    def job(self) -> int:
        """The header's job number in the packets of its first tree."""
        return self.trees[0].job

    @property
    def switch(self) -> Peer:
        """The first node of its first tree."""
        return self.trees[0].peer

    @property
    def lanes(self) -> int:
        """See :func:`lanes_of`."""
        return lanes_of(self.slots)

    @property
    def is_at_one_switch(self) -> bool:
        """Whether one switch has all workers: each is a contributor of its own."""
        (first, *others) = self.trees
        return not others and first.expected_bitmap.bit_count() == self.world_size

    @property
    def has_shapes(self) -> bool:
        """Whether a rank sends and gets only what it has to give and wants.

        Else each collective is a sum to which all ranks send all values, zeros where they have
        none.
        """
        return all(tree.owners for tree in self.trees)

    def node_of(self, seq: int) -> str:
        """Where the packets of this sequence number go, for people."""
        lane = seq % self.lanes
        return next(it.where for it in self.trees if lane < it.first_lane + it.lanes)

    def worker_config(
        self,
        *,
        stall_timeout_ns: int,
        rto: RtoLimits,
        keep_results: bool,
        leads_to: Peer | None = None,
    ) -> WorkerConfig:
        """What the core knows of the job, and how it shall behave in it.

        `leads_to`: the node that the worker's link leads to; by default the ticket's first.
        """
        usual = leads_to or self.switch
        return WorkerConfig(
            job=self.job,
            epoch=self.epoch,
            rank=self.rank,
            world_size=self.world_size,
            expected_bitmap=self.trees[0].expected_bitmap,
            summands=self.world_size,
            divisor=self.world_size,
            slots=self.slots,
            values_per_packet=self.values_per_packet,
            stall_timeout_ns=stall_timeout_ns,
            rto=rto,
            keep_results=keep_results,
            verify=_NATIVE_MODES[self.verify],
            check_key=self.check_key or bytes(CHECK_KEY_BYTES),
            trees=[tree.native(usual) for tree in self.trees],
            **modes.of(self.mode).worker,
        )


def tell_unused(ticket: Ticket) -> None:
    """Warn where a job has more slots than it can use."""
    used = 1 << (ticket.slots.bit_length() - 1)
    if used < ticket.slots and ticket.rank == 0:
        _log.warning(
            "job %r uses %d of its %d slots: a power of two, so that sequence numbers can wrap",
            *(ticket.job_name, used, ticket.slots),
        )
