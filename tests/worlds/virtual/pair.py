"""Reference and compiled program in step: every frame goes to both, and they must agree."""

from __future__ import annotations

from collections.abc import Sequence

from ina.protocol.switch_model import ModelJob
from ina.tables.values import AnyItem
from ina.testing.case import all_counters, shown, shown_counter
from ina.testing.frames import PortFrame
from ina.testing.model_device import ModelDevice
from ina.testing.soft_device import SoftDevice
from ina.testing.state import job_state


class Disagreement(AssertionError):  # noqa: N818 (a finding)
    """What went in, and what came out of each."""


class Pair:
    """The model and the soft switch, at power-on. The soft switch stays its owner's."""

    def __init__(self, values: int, compiled: SoftDevice) -> None:
        self.reference = ModelDevice(compiled.mode)
        self.compiled = compiled
        self.packets = 0
        self._jobs: dict[int, ModelJob] = {}
        self._seen: list[AnyItem] = []
        for device in (self.reference, self.compiled):
            device.reset(values)

    def install(self, job: ModelJob) -> None:
        """Admits the job, or starts it over in a newer epoch."""
        self.remove(job.number)
        self._jobs[job.number] = job
        self._insert(job_state(job))

    def remove(self, number: int) -> None:
        """Ends the job; one that is not there is left alone."""
        former = self._jobs.pop(number, None)
        if former is not None:
            for device in (self.reference, self.compiled):
                device.delete(job_state(former)[::-1])

    def process(self, port: int, data: bytes) -> list[PortFrame]:
        """Returns what both send. Raises Disagreement when they do not send the same bytes."""
        wanted = self.reference.process([(port, data)])
        got = self.compiled.process([(port, data)])
        if got != wanted:
            raise Disagreement(
                f"packet {self.packets}, port {port}, {data.hex()}:\n"
                f"reference {_shown(wanted)}\ncompiled {_shown(got)}"
            )
        self.packets += 1
        return wanted

    def check_counters(self) -> None:
        """Compares the counters of the drops and of every job that was ever installed."""
        refs = all_counters(self._seen, self.compiled.mode)
        for ref, wanted, got in zip(
            refs, self.reference.counts(refs), self.compiled.counts(refs), strict=True
        ):
            if got != wanted:
                raise Disagreement(f"{shown_counter(ref)}: reference {wanted}, compiled {got}")

    def _insert(self, items: Sequence[AnyItem]) -> None:
        self._seen += items
        for device in (self.reference, self.compiled):
            device.insert(items)


def _shown(frames: list[PortFrame]) -> str:
    return "; ".join(f"port {port} {shown([data])}" for port, data in frames) or "nothing"
