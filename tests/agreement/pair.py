"""Both switches in step: every frame goes to both, and they must agree."""

from __future__ import annotations

from types import TracebackType

from ina.p4 import names
from ina.protocol.spec import DropReason
from ina.protocol.switch_model import Job
from tests.agreement.program import CompiledSwitch
from tests.agreement.reference import PortFrame, ReferenceSwitch


class Disagreement(AssertionError):  # noqa: N818 (a finding)
    """What went in, and what came out of each."""


class Pair:
    """The reference switch and the compiled program. A context manager: it frees the program."""

    def __init__(self, values: int) -> None:
        self.reference = ReferenceSwitch(names.SLOTS_TOTAL, values)
        self.compiled = CompiledSwitch(values)
        self.packets = 0
        self._jobs_seen: dict[int, Job] = {}

    def __enter__(self) -> Pair:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.compiled.close()

    def install(self, job: Job) -> None:
        """Admits the job, or starts it over in a newer epoch."""
        self._jobs_seen[job.number] = job
        self.reference.model.install(job)
        self.compiled.install(job)

    def remove(self, number: int) -> None:
        """Ends the job."""
        self.reference.model.remove(number)
        self.compiled.remove(number)

    def forward(self, dst_mac: int, port: int) -> None:
        """Forwards ordinary frames to a MAC address through a port."""
        self.reference.forwarding[dst_mac] = port
        self.compiled.forward(dst_mac, port)

    def process(self, port: int, data: bytes) -> list[PortFrame]:
        """Returns what both send. Raises Disagreement when they do not send the same bytes."""
        wanted = self.reference.process(port, data)
        got = self.compiled.process(port, data)
        if got != wanted:
            raise Disagreement(
                f"packet {self.packets}, port {port}, {data.hex()}:\n"
                f"reference {_shown(wanted)}\ncompiled {_shown(got)}"
            )
        self.packets += 1
        return wanted

    def check_counters(self) -> None:
        """Compares the counters of the drops and of every job that was ever installed."""
        for reason in DropReason:
            wanted = self.reference.drop_count(reason)
            got = self.compiled.drops(reason)
            if got != wanted:
                raise Disagreement(f"drops of {reason.name}: reference {wanted}, compiled {got}")
        for job in self._jobs_seen.values():
            wanted_of_job = self.reference.job_counts(job)
            got_of_job = self.compiled.job_counts(job)
            if got_of_job != wanted_of_job:
                raise Disagreement(
                    f"counters of job {job.number}: {wanted_of_job}, compiled {got_of_job}"
                )


def _shown(frames: list[PortFrame]) -> str:
    return "; ".join(f"port {port} {data.hex()}" for port, data in frames) or "nothing"
