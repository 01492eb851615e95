"""What a worker must know to take part in a job: its place in it, and where its switches are."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

from ina.congestion import Congestion
from ina.extension.host import RtoLimits, VerifyMode, WorkerConfig
from ina.host.errors import InvalidTicketError, WorldSizeError
from ina.host.trees import TreePlace, check_trees
from ina.p4.catalogue import V1MODEL, ProgramId
from ina.p4.names import DEFAULT_MODE, MODES
from ina.protocol.spec import MAX_WORKERS, MAX_WORLD_SIZE
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


@dataclass(frozen=True)
class Ticket:
    """One worker's place in one job, as the controller gives it. Immutable and picklable."""

    job_name: str
    job: int  # the header's job number, 0..65535
    epoch: int  # incarnation, 32 bits; the header carries the low 16
    rank: int
    world_size: int  # 1..1024; without `trees` 1..32
    slots: int  # both versions (2 W), the same on all workers, 2..65536
    values_per_packet: int  # of the P4 build that the switch runs
    switch_host: str  # IPv4 address that contributions go to
    switch_udp_port: int
    congestion: Congestion = field(default_factory=Congestion)
    expected_bitmap: int = 0  # contributors that a whole result names; 0: all ranks of the job
    summands: int = 0  # contributions in a sum: what the scale of floats leaves room for; 0: ranks
    divisor: int = 0  # of an average; 0: as many as there are ranks
    mode: str = (
        DEFAULT_MODE  # of the switch's program, and its target: with the values they name it
    )
    target: str = V1MODEL
    verify: Verify = "off"  # how sums are verified, the same on all workers
    check_key: bytes = field(default=b"", repr=False)  # of verify "keyed": all workers', secret
    # What the lanes are dealt to, in their order. Empty: one switch, whose children are the ranks.
    # `job`, `expected_bitmap` and the switch's address are those of the first.
    trees: tuple[TreePlace, ...] = ()

    def __post_init__(self) -> None:
        check_world(self.rank, self.world_size)
        self._check_trees()
        for field_name, usual in (
            ("expected_bitmap", self._usual_bitmap()),
            ("summands", self.world_size),
            ("divisor", self.world_size),
        ):
            object.__setattr__(self, field_name, getattr(self, field_name) or usual)
        if self.mode not in MODES:
            raise InvalidTicketError(
                f"job {self.job_name!r}: its switch runs {self.program}; workers speak"
                f" {' and '.join(MODES)}"
            )
        if not self.trees and not self.expected_bitmap >> self.rank & 1:
            raise InvalidTicketError(
                f"job {self.job_name!r}: expected_bitmap {self.expected_bitmap:#x} lacks rank"
                f" {self.rank}"
            )
        checked_verify(f"job {self.job_name!r}: verify", self.verify)
        if self.verify == "keyed" and len(self.check_key) != CHECK_KEY_BYTES:
            raise InvalidTicketError(
                f"job {self.job_name!r}: check_key has {len(self.check_key)} bytes, verify 'keyed'"
                f" needs {CHECK_KEY_BYTES}"
            )
        for name, low, high in (
            ("job", 0, 0xFFFF),
            ("epoch", 0, 0xFFFFFFFF),
            ("slots", 2, 0x10000),
            ("values_per_packet", 1, 0xFFF),
            ("switch_udp_port", 1, 0xFFFF),
            ("expected_bitmap", 1, 0xFFFFFFFF),
            ("summands", 1, 0xFFFF),
            ("divisor", 1, 0xFFFF),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidTicketError(
                    f"job {self.job_name!r}: {name} is {value}, must be {low}..{high}"
                )

    def _check_trees(self) -> None:
        who = f"job {self.job_name!r}"
        if not self.trees and self.world_size > MAX_WORKERS:
            raise InvalidTicketError(
                f"{who}: {self.world_size} workers at one switch, which sums at most {MAX_WORKERS}"
            )
        if 2 <= self.slots <= 0x10000:  # else that is what is wrong
            check_trees(who, self.trees, self.lanes)
        if self.trees and self.trees[0].address != (self.switch_host, self.switch_udp_port):
            raise InvalidTicketError(
                f"{who}: its first tree begins at {self.trees[0].where}, and not at its switch"
                f" {self.switch_host}:{self.switch_udp_port}"
            )

    def _usual_bitmap(self) -> int:
        return self.trees[0].expected_bitmap if self.trees else (1 << self.world_size) - 1

    @property
    def lanes(self) -> int:
        """W: half of the slots, rounded down to a power of two."""
        return 1 << (self.slots.bit_length() - 2)

    @property
    def is_at_one_switch(self) -> bool:
        """Whether one switch has all workers: each is a contributor of its own."""
        return len(self.trees) <= 1 and self.expected_bitmap.bit_count() == self.world_size

    def node_of(self, seq: int) -> str:
        """Where the packets of this sequence number go, for people."""
        lane = seq % self.lanes
        for tree in self.trees:
            if lane < tree.first_lane + tree.lanes:
                return tree.where
        return f"{self.switch_host}:{self.switch_udp_port}"

    @property
    def program(self) -> ProgramId:
        """What the switch runs."""
        return ProgramId(self.mode, self.target, self.values_per_packet)

    def worker_config(
        self,
        *,
        stall_timeout_ns: int,
        rto: RtoLimits,
        keep_results: bool,
        leads_to: tuple[str, int] | None = None,
    ) -> WorkerConfig:
        """What the core knows of the job, and how it shall behave in it.

        `leads_to`: the node that the worker's link leads to; by default the ticket's first.
        """
        usual = leads_to or (self.switch_host, self.switch_udp_port)
        return WorkerConfig(
            job=self.job,
            epoch=self.epoch,
            rank=self.rank,
            world_size=self.world_size,
            expected_bitmap=self.expected_bitmap,
            summands=self.summands,
            divisor=self.divisor,
            slots=self.slots,
            values_per_packet=self.values_per_packet,
            stall_timeout_ns=stall_timeout_ns,
            rto=rto,
            keep_results=keep_results,
            verify=_NATIVE_MODES[self.verify],
            check_key=self.check_key or bytes(CHECK_KEY_BYTES),
            trees=[tree.native(usual) for tree in self.trees],
        )


def tell_unused(ticket: Ticket) -> None:
    """Warn where a job has more slots than it can use."""
    used = 1 << (ticket.slots.bit_length() - 1)
    if used < ticket.slots and ticket.rank == 0:
        _log.warning(
            "job %r uses %d of its %d slots: a power of two, so that sequence numbers can wrap",
            *(ticket.job_name, used, ticket.slots),
        )
