"""Whether a job may end: what of a scenario is a cause for it, by what docs/failures.md promises.

A job outlives lost, late, doubled and damaged packets, links that are down for less than its
stall timeout, controllers that die, and whatever becomes of other jobs. So where none of its own
ranks, no switch and no control message comes to harm, an end is a broken promise.
"""

from __future__ import annotations

from ina import modes
from ina.host.errors import OperationTimeoutError
from ina.p4 import names
from ina.sim.scenario import JobSpec, LinkSpec, Scenario

_MOST_LOSS = 0.05
"""Of packets each way. With more, a chunk of many workers can take longer than a stall timeout."""
_MOST_DELAY_US = 100_000.0
_MOST_LATE_US = 3_500_000.0
"""With which results still come, and so nobody has waited for one for a stall timeout: over six
links there and back, and once more where the first packet was lost."""
_ORDERS = ("resize", "windows", "repair")
"""What an operator orders: no job may end for it."""
_LEASE_SHARE = 8
"""Control messages are in time if even the slowest takes no more than this part of a lease."""


def cause_of_end(
    scenario: Scenario, job: JobSpec, *, error: str = "", links_were_mended: bool = False
) -> str:
    """The first thing for which this job may end before its steps are done; empty: none.

    ``error``: how it has. ``links_were_mended``: long before it gave up waiting, so that they are
    no cause.
    """
    control = scenario.controller
    others = (it for it in scenario.fault if it.what == "resize" and it.where != job.name)
    if "no slots left" in error and any(it.slots > names.SLOTS_TOTAL // 2 for it in others):
        return "another job is given most of the slots"
    for fault in scenario.fault:
        its_own = fault.where.startswith(f"{job.name}/")
        if fault.what in ("crash", "pause") and its_own:
            return f"{fault.what} {fault.where}"
        if fault.what == "power_cycle" and _only_shares(scenario, job, fault.where):
            continue
        if fault.what in ("power_cycle", "controller_cut", "link"):
            return f"{fault.what} {fault.where}".strip()
    if control.loss > 0:
        return "control messages get lost"
    if control.delay_ms + control.jitter_ms > control.lease_s * 1e3 / _LEASE_SHARE:
        return "control messages are late"
    if spoils_sums(scenario, job):
        return "frames arrive damaged"
    links = [scenario.link, scenario.link_back, scenario.link_up]
    links += [one.link for one in scenario.aggregator]
    for link in links:
        late_us = _MOST_LATE_US if OperationTimeoutError.__name__ in error else _MOST_DELAY_US
        if link is not None and _spoils(link, late_us) and not links_were_mended:
            return "links that lose or delay more than a job need stand"
    return ""


def scripted_end(scenario: Scenario, job: JobSpec, ended_s: float) -> str:
    """What was done last on purpose for which this job may have ended then; empty: nothing was.

    A scenario kills what it lists as a fault. What it says of links is how the network is, and a
    job that ends for that, or of itself, has lost what it was at.
    """
    found: list[tuple[float, str]] = []
    for fault in scenario.fault:
        others = fault.what in ("pause", "crash") and not fault.where.startswith(f"{job.name}/")
        if fault.what not in _ORDERS and not others and fault.at_ms / 1e3 <= ended_s:
            found.append((fault.at_ms, f"{fault.what} {fault.where}".strip()))
    return max(found)[1] if found else ""


def _only_shares(scenario: Scenario, job: JobSpec, switch: str) -> bool:
    """Whether a job has slots there with others alone, so that nothing is missing without them."""
    if modes.of(job.mode).is_sized or switch in scenario.switch.aggregators:
        return False
    if any(fault.mode and fault.where == job.name for fault in scenario.fault):
        return False  # it may have slots of its own by then
    return all(switch != one.name for one in scenario.aggregator)


def spoils_sums(scenario: Scenario, job: JobSpec) -> bool:
    """Whether frames that are not as they were sent get to the job's workers; NICs drop them."""
    return modes.of(job.mode).framing == modes.Mode.framing and spoils_frames(scenario)


def spoils_frames(scenario: Scenario) -> bool:
    """Whether frames arrive that are not as they were sent."""
    links = [scenario.link, scenario.link_back, scenario.link_up]
    links += [one.link for one in scenario.aggregator]
    links += [fault.link for fault in scenario.fault]
    return any(link and link.corruption > 0 and not link.frame_check for link in links)


def _spoils(link: LinkSpec, most_late_us: float) -> bool:
    lost = link.loss + link.corruption + (1.0 if link.burst_from > 0 else 0.0)
    late_us = link.delay_us + link.jitter_us + link.reordering_us
    return lost > _MOST_LOSS or late_us > most_late_us
