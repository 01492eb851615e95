"""What a worker must know to take part in a job: its place in the job and where the switch is."""

from __future__ import annotations

from dataclasses import dataclass, field

from ina.congestion import Congestion
from ina.host.errors import InvalidTicketError, WorldSizeError
from ina.protocol.spec import MAX_WORKERS


def check_world(rank: int, world_size: int) -> None:
    """Raise WorldSizeError unless 0 <= rank < world_size <= 32."""
    if world_size > MAX_WORKERS:
        raise WorldSizeError(
            f"world_size {world_size}: one switch sums at most {MAX_WORKERS} workers, because one "
            f"level's contributors bitmap has {MAX_WORKERS} bits"
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
    world_size: int  # 1..32
    slots: int  # both versions (2 W), the same on all workers, 2..65536
    values_per_packet: int  # of the P4 build that the switch runs
    switch_host: str  # IPv4 address that contributions go to
    switch_udp_port: int
    congestion: Congestion = field(default_factory=Congestion)

    def __post_init__(self) -> None:
        check_world(self.rank, self.world_size)
        for name, low, high in (
            ("job", 0, 0xFFFF),
            ("epoch", 0, 0xFFFFFFFF),
            ("slots", 2, 0x10000),
            ("values_per_packet", 1, 0xFFF),
            ("switch_udp_port", 1, 0xFFFF),
        ):
            value = getattr(self, name)
            if not low <= value <= high:
                raise InvalidTicketError(
                    f"job {self.job_name!r}: {name} is {value}, must be {low}..{high}"
                )
