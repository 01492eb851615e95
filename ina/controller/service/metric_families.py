"""Metrics of each job, of each of its members, and of each tenant, as a controller sees them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from ina.p4 import names
from ina.rpc import controller_pb2 as pb2

# By the counter's alias; metric names end in _total (packets) and _bytes_total.
JOB_COUNTERS = {
    "job_contributions": "Contributions that the switch added to a sum",
    "job_results": "Sums that the switch completed",
    "job_replays": "Finished sums that the switch sent again to one worker, or to its parent",
    "job_duplicates": "Contributions that came again before their sum was complete",
    "job_stale": "Contributions older than what their slot holds",
    "job_passed_down": "Results of its parent that the switch admitted to hand them on",
    "job_ecn_marks": "Results that the switch marked for a long queue",
    "job_unaddressed": "Results for a worker without a receiver entry",
    "job_flushes": "Sums that a packet sent again took up before they were complete",
    "job_evictions": "Incomplete sums that went up as another job took the slot over",
    "job_collisions": "Contributions that went up alone, for their slot was another job's",
    "job_bypassed": "Contributions that went up alone, for their lane may claim no slot",
    "job_late": "Contributions that went up alone, for their round was over",
    "job_missed": "Contributions that were sent again, found no sum, and went up alone",
}
DROPS = names.DROPS.rpartition(".")[2]

_OfJob = Callable[[pb2.Job], float]
_OfMember = Callable[[pb2.Member], float]
_OfTenant = Callable[[pb2.Tenant], float]

_JOB_GAUGES: tuple[tuple[str, str, _OfJob], ...] = (
    ("workers", "Workers that the job is for.", lambda job: job.world_size),
    ("joined_workers", "Workers that have joined and not left.", lambda job: len(job.joined)),
    ("slots", "Slots that it has on the switch.", lambda job: job.slots),
    ("window_packets", "Packets in flight that a worker may have.", lambda job: job.window),
    ("priority", "Its priority.", lambda job: job.priority),
    ("epoch", "Its epoch: another one is another incarnation.", lambda job: job.epoch),
    ("stalled", "1: nothing completes, and somebody waits.", lambda job: job.HasField("stall")),
    ("missing_workers", "Workers that the others wait for.", lambda job: len(job.stall.missing)),
    ("stalled_since_seconds", "Since when, in Unix time; 0: it is not stalled.",
     lambda job: job.stall.since_unix_s),
    ("changing", "1: its slots, or its tree, change.", lambda job: job.HasField("remapping")),
)  # fmt: skip
_MEMBER_GAUGES: tuple[tuple[str, str, _OfMember], ...] = (
    ("lease_seconds", "Time until it is taken for dead.", lambda member: member.lease_left_s),
    ("watching", "1: it holds a stream of events.", lambda member: member.watching),
    ("in_flight_packets", "Packets without a result, as it said last.",
     lambda member: member.progress.in_flight),
    ("silent_seconds", "Time without any result while it waited, as it said last.",
     lambda member: member.progress.silent_s),
)  # fmt: skip
_MEMBER_COUNTERS: tuple[tuple[str, str, _OfMember], ...] = (
    ("operations", "Operations done, as it said last.",
     lambda member: member.progress.operations_done),
    ("chunks", "Chunks (packets of values) done, as it said last.",
     lambda member: member.progress.chunks_done),
    ("retransmissions", "Packets it sent again, as it said last.",
     lambda member: member.progress.retransmissions),
    ("losses", "Of those, needed: an earlier copy, or its answer, was lost.",
     lambda member: member.progress.losses),
    ("spurious_resends", "Of those, not needed: sent because a later packet was answered.",
     lambda member: member.progress.spurious_resends),
    ("probes", "Of those, not needed: sent because nothing was heard, as a worker was late.",
     lambda member: member.progress.probes),
    ("packets_sent", "Packets it sent, with those sent again, as it said last.",
     lambda member: member.progress.packets_sent),
    ("corrupted_sums", "Results that were not the sum of what the workers sent, as it said last.",
     lambda member: member.progress.corrupted_sums),
)  # fmt: skip
_TENANT_GAUGES: tuple[tuple[str, str, _OfTenant, _OfTenant], ...] = (
    ("jobs", "Jobs", lambda tenant: tenant.jobs, lambda tenant: tenant.jobs_limit),
    ("slots", "Slots reserved for its jobs", lambda tenant: tenant.slots,
     lambda tenant: tenant.slots_limit),
    ("workers", "Workers that its jobs are for", lambda tenant: tenant.workers,
     lambda tenant: tenant.workers_limit),
)  # fmt: skip
"""What, in words, what it has, and its limit; 0: none."""


def job_families(
    jobs: Sequence[pb2.Job],
    members: Mapping[str, Sequence[pb2.Member]],
    counters: Iterable[pb2.Counter],
) -> Iterator[Metric]:
    """``members`` by name of the job; ``counters`` as the switch has them, drops among them."""
    info = GaugeMetricFamily("ina_job_info", "Always 1.", labels=["job_name", "tenant", "switch"])
    for job in jobs:
        info.add_metric([job.name, job.tenant, job.switch], 1)
    yield info
    for name, text, of_job in _JOB_GAUGES:
        family = GaugeMetricFamily(f"ina_job_{name}", text, labels=["job_name", "tenant"])
        for job in jobs:
            family.add_metric([job.name, job.tenant], float(of_job(job)))
        yield family
    yield from _member_families(GaugeMetricFamily, _MEMBER_GAUGES, members)
    yield from _member_families(CounterMetricFamily, _MEMBER_COUNTERS, members)
    yield from _switch_families(list(counters))


def _member_families(
    kind: type[GaugeMetricFamily] | type[CounterMetricFamily],
    rows: Iterable[tuple[str, str, _OfMember]],
    members: Mapping[str, Sequence[pb2.Member]],
) -> Iterator[Metric]:
    for name, text, value in rows:
        family = kind(f"ina_member_{name}", text, labels=["job_name", "rank"])
        for job_name, of_job in members.items():
            for member in of_job:
                family.add_metric([job_name, str(member.rank)], float(value(member)))
        yield family


def _switch_families(counters: list[pb2.Counter]) -> Iterator[Metric]:
    for alias, text in JOB_COUNTERS.items():
        labels = ["job_name", "switch"]
        packets = CounterMetricFamily(f"ina_{alias}", f"{text}.", labels=labels)
        size = CounterMetricFamily(f"ina_{alias}_bytes", f"{text}: bytes.", labels=labels)
        of_jobs = [it for it in counters if it.name == alias and it.job]
        # One may have two numbers, and counters for each.
        for job, switch in dict.fromkeys((it.job, it.switch) for it in of_jobs):
            its = [it for it in of_jobs if (it.job, it.switch) == (job, switch)]
            packets.add_metric([job, switch], sum(it.packets for it in its))
            size.add_metric([job, switch], sum(it.bytes for it in its))
        yield from (packets, size)
    drops = CounterMetricFamily(
        "ina_dataplane_dropped_packets",
        "INA packets that the switch's program refused.",
        labels=["reason", "switch"],
    )
    for counter in counters:
        if counter.name == DROPS:
            drops.add_metric([counter.label, counter.switch], counter.packets)
    yield drops


def tenant_families(tenants: Iterable[pb2.Tenant]) -> Iterator[Metric]:
    """A limit that a tenant does not have is no sample: a ratio to it is none either."""
    all_of_them = list(tenants)
    for name, text, used, limit in _TENANT_GAUGES:
        has = GaugeMetricFamily(f"ina_tenant_{name}", f"{text}.", labels=["tenant"])
        may = GaugeMetricFamily(
            f"ina_tenant_{name}_limit", f"{text}: at most at a time.", labels=["tenant"]
        )
        for tenant in all_of_them:
            has.add_metric([tenant.name], float(used(tenant)))
            if limit(tenant):
                may.add_metric([tenant.name], float(limit(tenant)))
        yield from (has, may)
