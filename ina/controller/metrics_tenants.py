"""Metrics of each tenant: what it uses, and what it may use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from ina.rpc import controller_pb2 as pb2

_OfTenant = Callable[[pb2.Tenant], float]

_GAUGES: tuple[tuple[str, str, _OfTenant, _OfTenant], ...] = (
    ("jobs", "Jobs", lambda tenant: tenant.jobs, lambda tenant: tenant.jobs_limit),
    ("slots", "Slots reserved for its jobs", lambda tenant: tenant.slots,
     lambda tenant: tenant.slots_limit),
    ("workers", "Workers that its jobs are for", lambda tenant: tenant.workers,
     lambda tenant: tenant.workers_limit),
)  # fmt: skip
"""What, in words, what it has, and its limit; 0: none."""


def tenant_families(tenants: Iterable[pb2.Tenant]) -> Iterator[Metric]:
    """A limit that a tenant does not have is no sample: a ratio to it is none either."""
    all_of_them = list(tenants)
    for name, text, used, limit in _GAUGES:
        has = GaugeMetricFamily(f"ina_tenant_{name}", f"{text}.", labels=["tenant"])
        may = GaugeMetricFamily(
            f"ina_tenant_{name}_limit", f"{text}: at most at a time.", labels=["tenant"]
        )
        for tenant in all_of_them:
            has.add_metric([tenant.name], float(used(tenant)))
            if limit(tenant):
                may.add_metric([tenant.name], float(limit(tenant)))
        yield from (has, may)
