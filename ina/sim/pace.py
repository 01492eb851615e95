"""How fast a job must be that nothing disturbs: a window that locks at a share of its links shows
in no sum, nor in how a job ends."""

from __future__ import annotations

from msgspec.structs import replace

from ina.p4.builds import frame_bytes
from ina.protocol.spec import VALUE_BYTES
from ina.sim.job_run import JobRun
from ina.sim.scenario import HostSpec, LinkSpec, Scenario, SwitchSpec

LEAST_SHARE = 0.75
"""Of what a link carries, in the last step: what there is of beginnings and ends of tensors is
less than the rest, and a window that has locked at a half is below."""
_PROMISE = ("", "ina", "adaptive", "fixed")
"""Windows that are to fill links; of others some only do so with options for the network."""
_LEAST_CHUNKS = 1000
_MOST_DELAY_US = 20.0
"""So that the usual 512 slots hold several round trips at 10 Gbit/s."""


def too_slow(scenario: Scenario, job: JobRun) -> str:
    """How a job was slower than its links allow; empty: it was not, or something disturbed it."""
    if not _is_undisturbed(scenario):
        return ""
    spec, last = job.spec, job.incarnations[-1]
    if not last.reduced_s or last.error:
        return ""
    payload_bytes = scenario.values * VALUE_BYTES
    wire_bytes = frame_bytes(scenario.values) + scenario.link.wire_gap_bytes
    limit_gbit = scenario.link.rate_gbit * payload_bytes / wire_bytes
    chunks = sum(-(-it.elems // scenario.values) * it.count for it in spec.tensors)
    found_gbit = chunks * payload_bytes * 8e-9 / last.reduced_s[-1]
    if chunks < _LEAST_CHUNKS or found_gbit >= LEAST_SHARE * limit_gbit:
        return ""
    return (
        f"job {job.name}: {found_gbit:.3g} Gbit/s in its last step, of {limit_gbit:.3g} that its"
        f" links carry; rank 0 had a window of {last.in_flight_limit} of {last.window} packets"
    )


def _is_undisturbed(scenario: Scenario) -> bool:
    """One job of mode pool at one switch, a rank a host; links that do nothing but carry."""
    link, (job, *others) = scenario.link, scenario.job
    clean = LinkSpec(rate_gbit=link.rate_gbit, delay_us=link.delay_us, queue_kib=link.queue_kib)
    return (
        scenario.topology.kind == "star"
        and not (others or scenario.traffic or scenario.fault)
        and link == clean
        and link.delay_us <= _MOST_DELAY_US
        and link.queue_kib >= 256
        and scenario.link_back in (None, link)
        and scenario.host == HostSpec()
        and scenario.switch == SwitchSpec()
        and scenario.controller == replace(scenario.controller, caps="none", loss=0.0)
        and str(scenario.congestion.get("algorithm", "")) in _PROMISE
        and len(scenario.congestion) <= 1
        and not job.congestion
        and job.slots == 0
        and job.straggler.mean_ms == 0
        and len(set(job.hosts)) == job.workers
        and all(it.dtype != "int32" for it in job.tensors)
    )
