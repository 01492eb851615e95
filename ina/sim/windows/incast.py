"""Many workers through two racks, that begin each step at once: does anybody wait for a timer?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ina.sim.scenario import JobSpec, Scenario, TensorSpec, TopologySpec
from ina.sim.windows.cell import Cell, Family, Measured, Promise
from ina.sim.windows.measure import grown, loss_share, queue_bytes
from ina.sim.windows.network import ASKED, Limit, Net, limit
from ina.sim.windows.series import series_of
from ina.sim.windows.watch import Watch, observe

_SLOTS = 512
_STEP_ROUND_TRIPS = 30
"""That a step's tensor takes at the limit."""
_COMPUTE_ROUND_TRIPS = 5
_WARM_STEPS, _STEPS = 4, 12


@dataclass(frozen=True, kw_only=True)
class Incast(Cell):
    """Half of the workers in each rack, the root above both."""

    workers: int

    @property
    def limit(self) -> Limit:
        """While it reduces."""
        return limit(self.net, _SLOTS // 2)

    @property
    def _step_s(self) -> float:
        return (_STEP_ROUND_TRIPS + 1 + _COMPUTE_ROUND_TRIPS) * self.net.base_s

    def scenario(self, congestion: Mapping[str, object]) -> Scenario:
        """More steps than are looked at."""
        step_bytes = self.limit.goodput_gbit * 1e9 / 8 * _STEP_ROUND_TRIPS * self.net.base_s
        return Scenario(
            name=f"incast: {self.name}",
            values=self.net.values,
            topology=TopologySpec(kind="racks", racks=[self.workers // 2] * 2),
            link=self.net.link(),
            ecn_packets=self.net.threshold_packets,
            congestion=dict(congestion),
            controller=ASKED,
            job=[
                JobSpec(
                    name="train",
                    workers=self.workers,
                    racks=2,
                    steps=10 * _STEPS,
                    slots=_SLOTS,
                    compute_ms=_COMPUTE_ROUND_TRIPS * self.net.base_s * 1e3,
                    tensors=[TensorSpec(elems=round(step_bytes / 4))],
                    check=False,
                )
            ],
        )

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """As the base has it."""
        watch = Watch(every_s=self.net.base_s / 2, total_s=_STEPS * self._step_s)
        history = observe(self.scenario(congestion), seed, watch)
        from_s = _WARM_STEPS * self._step_s
        job = history.jobs["train"]
        # A step ends a round trip after its last packet has been sent.
        ideal_s = (_STEP_ROUND_TRIPS + 1) * self.net.base_s
        steps_s = watch.reduced_s["train"][_WARM_STEPS:]
        share = ideal_s * len(steps_s) / sum(steps_s) if steps_s else 0.0
        sent = grown(history.at_s, job.sent, from_s)
        return Measured(
            metrics={
                "Gbit/s": share * self.limit.goodput_gbit,
                "share of limit": share,
                "timeouts": grown(history.at_s, job.timeouts, from_s),
                "probes": grown(history.at_s, job.probes, from_s),
                "resent": grown(history.at_s, job.resent, from_s) / sent if sent else 0.0,
                "loss": loss_share(history, from_s),
                "queue/threshold": queue_bytes(history, from_s, 99) / self.net.threshold_bytes,
            },
            series=series_of(history),
        )


def _cell(workers: int, net: Net, *, is_quick: bool = False, plot: str = "") -> Incast:
    return Incast(
        name=f"{workers} workers, {net.text}",
        net=net,
        workers=workers,
        is_quick=is_quick,
        plot=plot,
    )


INCAST = Family(
    "incast",
    "workers through two racks that begin each step at once",
    (
        _cell(16, Net(10, 50, 128, 1024, cables=2), is_quick=True),
        _cell(64, Net(10, 50, 128, 1024, cables=2), plot="incast"),
        _cell(64, Net(10, 50, 1024, 1024, cables=2)),
        _cell(64, Net(100, 50, 512, 1024, cables=2)),
    ),
    (
        Promise("timeouts", 0, is_least=False),
        Promise("probes", 0, is_least=False),
        Promise("loss", 1e-4, is_least=False),
    ),
    ("Gbit/s", "share of limit", "timeouts", "probes", "resent", "loss", "queue/threshold"),
)
