"""Services of embeddings as Prometheus metrics.

Labels: ``rank``, the host's number in its group; ``module``, which of this process's services it
is, in the order of their starts; and, where it is of a table, ``table``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ina.embed.service import SERVICES, Service
from ina.extension.embed import TableCounters

PREFIX = "ina_embed_"
_LABELS = ["rank", "module"]

# Name after PREFIX, help, and what is read of the service.
COUNTERS: tuple[tuple[str, str, Callable[[Service], int]], ...] = (
    ("answers", "Look-ups of all ranks that came here, with those that were asked again.",
     lambda s: s.native.owner.lookups),
    ("rows_read", "Rows that were read for them.", lambda s: s.native.owner.rows_read),
    ("gradients", "Messages of gradients that came here, each once.",
     lambda s: s.native.owner.gradients),
    ("repeated_gradients", "Parts of gradients that had come before.",
     lambda s: s.native.owner.repeated),
    ("late_lookups", "Look-ups of versions that were gone: late copies.",
     lambda s: s.native.owner.late),
    ("refused_lookups", "Look-ups that made no sense.", lambda s: s.native.owner.refused),
    ("unheld_lookups", "Look-ups ahead of their step, for which there was no room.",
     lambda s: s.native.owner.unheld),
    ("messages", "Look-ups and gradients that this rank has sent, each once.",
     lambda s: s.native.client.messages),
    ("retransmissions", "Of those, sent again.", lambda s: s.native.client.sent_again),
    ("stray_answers", "Answers that nobody waited for any more.", lambda s: s.native.client.stray),
    ("refreshes", "How often other rows have become hot.", lambda s: s.refreshes),
    ("strangers", "Packets of addresses that are no rank's.",
     lambda s: s.native.traffic.strangers),
    ("damaged", "Packets that were not whole, or had another group's key.",
     lambda s: s.native.damaged),
    ("send_drops", "Packets that this host's kernel did not take.",
     lambda s: s.native.traffic.send_drops),
)  # fmt: skip
# These have the label "direction": what of them is sent, what received.
BY_DIRECTION: tuple[tuple[str, str, Callable[[Service], tuple[int, int]]], ...] = (
    ("packets", "Packets of this rank's service.",
     lambda s: (s.native.traffic.sent_packets, s.native.traffic.received_packets)),
    ("bytes", "Bytes of those, from ina's header on.",
     lambda s: (s.native.traffic.sent_bytes, s.native.traffic.received_bytes)),
)  # fmt: skip
# These have the label "table".
BY_TABLE: tuple[tuple[str, str, Callable[[TableCounters], int]], ...] = (
    ("rows", "Rows that this rank's batches asked for by row, each once a batch.",
     lambda t: t.rows),
    ("bags", "Bags that its batches asked for by bag.", lambda t: t.bags),
    ("hot_hits", "Rows that look-ups have found as replicas here.", lambda t: t.hot_hits),
    ("cache_hits", "Rows of other ranks that the cache had.", lambda t: t.cache_hits),
    ("cache_misses", "Rows of other ranks that it had not.", lambda t: t.cache_misses),
)  # fmt: skip


class ServiceCollector(Collector):
    """The services of this process that are not closed."""

    def collect(self) -> Iterable[Metric]:
        """All families."""
        services = {(str(one.host), str(one.number)): one for one in SERVICES}
        for name, text, both in BY_DIRECTION:
            family = CounterMetricFamily(PREFIX + name, text, labels=[*_LABELS, "direction"])
            for labels, service in services.items():
                sent, received = both(service)
                family.add_metric([*labels, "sent"], sent)
                family.add_metric([*labels, "received"], received)
            yield family
        for name, text, of in COUNTERS:
            family = CounterMetricFamily(PREFIX + name, text, labels=_LABELS)
            for labels, service in services.items():
                family.add_metric(labels, of(service))
            yield family
        for name, text, of_table in BY_TABLE:
            family = CounterMetricFamily(PREFIX + name, text, labels=[*_LABELS, "table"])
            for labels, service in services.items():
                for number, table in enumerate(service.names):
                    count = of_table(service.native.table_counters(number))
                    family.add_metric([*labels, table], count)
            yield family
        version = GaugeMetricFamily(
            PREFIX + "version", "Steps whose gradients are in this rank's rows.", labels=_LABELS
        )
        replicas = GaugeMetricFamily(
            PREFIX + "hot_rows", "Rows that are replicas here.", labels=[*_LABELS, "table"]
        )
        for labels, service in services.items():
            version.add_metric(labels, service.native.version)
            for number, table in enumerate(service.names):
                replicas.add_metric([*labels, table], len(service.native.hot_rows(number)))
        yield from (version, replicas)
