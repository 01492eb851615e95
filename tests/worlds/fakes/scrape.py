"""Reads a Prometheus endpoint as Prometheus does."""

from __future__ import annotations

import urllib.request
from dataclasses import dataclass

from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families

TIMEOUT_S = 60


@dataclass(frozen=True)
class Scraped:
    """By family name, which has no ``_total``."""

    families: dict[str, Metric]

    def value(self, sample: str, **labels: str) -> float:
        """The one sample of this name whose labels have these values."""
        family = self.families[sample.removesuffix("_total")]
        found = [
            s.value
            for s in family.samples
            if s.name == sample and labels.items() <= s.labels.items()
        ]
        assert len(found) == 1, f"{sample}{labels}: {family.samples}"
        return found[0]


def scrape(address: str) -> Scraped:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT_S) as reply:
        text = reply.read().decode()
    return Scraped({family.name: family for family in text_string_to_metric_families(text)})
