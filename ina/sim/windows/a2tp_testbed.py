"""The published run of A2TP (EuroSys 2023) on its testbed, as far as ina can stand for it.

Two jobs share the slots of a switch, and a worker of one of them sends slowly. Then the other job
ends. What is A2TP's here is from its benchmark and the samples of it that its authors publish.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from ina.sim.scenario import FaultSpec, Scenario, TensorSpec
from ina.sim.windows.cell import Family, Measured
from ina.sim.windows.history import History
from ina.sim.windows.measure import grown, loss_share, rate_gbit
from ina.sim.windows.network import Net
from ina.sim.windows.series import series_of
from ina.sim.windows.slots import HEALTHY, LATE, WORKERS, Slots
from ina.sim.windows.watch import Watch, observe

_WARM_S, _BOTH_S = 9e-3, 14e-3
"""Since the first packet: until then windows grow, by a packet a round trip; until then both jobs
are measured, and that is the healthy one's work."""
_TOTAL_S, _AFTER_S = 28e-3, 5e-3
"""Of a run, and its last part, in which the late job is alone."""
_ALL = 0.99
"""Of the work: what is left is on its way, with nothing behind it by which losses are noticed."""
_CELLS, _CELL_BYTES = 1000, 80
"""A switch's queue of so many cells is marked, and what a cell of Tofino's holds."""
_SLOTS = 450
_LINK_GBIT = 100
_SLOW_GBIT = 23
"""What UDP leaves of the straggler's link. It was to send 80 Gbit/s, and the job had 16 to 17
Gbit/s of values, in packets that are a quarter headers."""


@dataclass(frozen=True, kw_only=True)
class A2tpTestbed(Slots):
    """As the base, but for what differs on the testbed.

    Hosts do not mark what they queue themselves, the switch marks longer queues, the straggler is
    slow to send alone, and a worker has several threads, each with a window.
    """

    threads: int
    """Of a worker."""
    marked_packets: int
    """Queues of the switch that are longer are marked."""

    def scenario(
        self, congestion: Mapping[str, object], names: list[str], healthy_bytes: float = 0.0
    ) -> Scenario:
        """``healthy_bytes``: that the healthy job has to sum, and then it ends; 0: without end."""
        usual = super().scenario(self._of_threads(congestion), names)
        plain = self.net.link(marks=False)
        slow = self.net.link(marks=False, rate_gbit=self.slow_gbit)
        work = [TensorSpec(elems=max(round(healthy_bytes / 4), 1))]
        return msgspec.structs.replace(
            usual,
            link=plain,
            link_back=plain,
            ecn_packets=self.marked_packets,
            job=[
                msgspec.structs.replace(job, tensors=work)
                if healthy_bytes and job.name == HEALTHY
                else job
                for job in usual.job
            ],
            fault=[
                FaultSpec(what="link", where=f"h{2 * WORKERS}>s1", at_ms=0, for_ms=1e6, link=slow)
            ],
        )

    def run(self, congestion: Mapping[str, object], seed: int) -> Measured:
        """Twice: until what the healthy job does in its time is known, and with as much to do."""
        first = self._both(congestion, seed, _BOTH_S, 0.0)
        done_bytes = float(first.jobs[HEALTHY].done_bytes[-1])
        both = self._both(congestion, seed, self.total_s, done_bytes)
        healthy, late = both.jobs[HEALTHY], both.jobs[LATE]
        end_s = float(both.at_s[np.argmax(healthy.done_bytes >= _ALL * healthy.done_bytes[-1])])
        after_s = self.total_s - _AFTER_S
        is_alone = healthy.done_bytes[both.first_at(after_s)] >= done_bytes
        after = (
            rate_gbit(both.at_s, late.done_bytes, after_s),
            self._share(both, LATE, after_s, self.total_s),
        )
        return Measured(
            metrics={
                "Gbit/s": rate_gbit(both.at_s, healthy.done_bytes, _WARM_S, end_s),
                "late, Gbit/s": rate_gbit(both.at_s, late.done_bytes, _WARM_S, end_s),
                "healthy slots": self._share(both, HEALTHY, _WARM_S, end_s),
                "late slots": self._share(both, LATE, _WARM_S, end_s),
                "late after, Gbit/s": after[0] if is_alone else math.nan,
                "late slots after": after[1] if is_alone else math.nan,
                "loss": loss_share(both, _WARM_S),
                "timeouts": grown(both.at_s, late.timeouts, _WARM_S),
            },
            series=series_of(both),
        )

    def _of_threads(self, congestion: Mapping[str, object]) -> dict[str, object]:
        """One window that grows as fast as those of all threads, and begins as theirs do: as large
        as may be. Options that ``congestion`` has stay."""
        first_bytes = float(self.window * self.net.frame_bytes)
        theirs: dict[object, dict[str, object]] = {
            "a2tp": {"first_bytes": first_bytes, "increase_packets": float(self.threads)},
            "aimd": {"first_bytes": first_bytes, "increase_bytes": 1500.0 * self.threads},
        }
        return {**theirs.get(congestion.get("algorithm"), {}), **congestion}

    def _both(
        self, congestion: Mapping[str, object], seed: int, total_s: float, healthy_bytes: float
    ) -> History:
        watch = Watch(every_s=1e-4, total_s=total_s, shared_slots=self.shared)
        scenario = self.scenario(congestion, [HEALTHY, LATE], healthy_bytes)
        return observe(scenario, seed, watch)

    def _share(self, history: History, job: str, from_s: float, to_s: float) -> float:
        looks = history.slots[job]
        inside = (history.at_s >= from_s) & (history.at_s < to_s)
        return float(looks[inside].mean()) / self.shared


def _cell(threads: int, marked_packets: int) -> A2tpTestbed:
    windows = f"{threads} windows" if threads > 1 else "a window"
    return A2tpTestbed(
        name=f"{windows} a worker, marked above {marked_packets} packets",
        net=_NET,
        shared=_SLOTS,
        slow_gbit=_SLOW_GBIT,
        total_s=_TOTAL_S,
        threads=threads,
        marked_packets=marked_packets,
        plot="a2tp-testbed" if (threads, marked_packets) == (9, _THEIRS) else "",
    )


_NET = Net(_LINK_GBIT, 20, 1024, 64, cables=2)  # by way of the switch to the aggregator
_THEIRS = _CELLS * _CELL_BYTES // _NET.frame_bytes
A2TP_TESTBED = Family(
    "a2tp-testbed",
    f"two jobs of 4 workers on {_SLOTS} slots, a straggler at {_SLOW_GBIT} of {_NET.text}, until "
    "the other job ends",
    (_cell(9, _THEIRS), _cell(1, _THEIRS), _cell(9, _NET.threshold_packets)),
    (),
    (
        *("Gbit/s", "late, Gbit/s", "healthy slots", "late slots", "late after, Gbit/s"),
        *("late slots after", "loss", "timeouts"),
    ),
)
