"""The Grafana dashboard and the alerting rules ask only for what is exported."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped,unused-ignore]
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from tests.metrics.exported import families, labels_by_sample
from tests.metrics.promql import PromqlError, names

DASHBOARDS = Path(__file__).parent.parent.parent / "dashboards"
DASHBOARD: dict[str, Any] = json.loads((DASHBOARDS / "ina.json").read_text())
RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DASHBOARDS / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
PANELS: list[dict[str, Any]] = DASHBOARD["panels"]
CHARTS = [panel for panel in PANELS if panel["type"] != "row"]
PROMETHEUS_OWN = {"instance"}  # labels that every sample gets when it is scraped
EXPORTED = labels_by_sample()

# (query, template of what is said about a sample: {{label}})
QUERIES = [(t["expr"], t["legendFormat"]) for panel in CHARTS for t in panel["targets"]]
ALERTS = [(r["expr"], r["annotations"]["summary"].replace("$labels.", "")) for r in RULES]


@pytest.mark.parametrize(("query", "said"), [*QUERIES, *ALERTS])
def test_metrics_and_labels_of_queries_are_exported(query: str, said: str) -> None:
    found = names(query)
    of_metrics = frozenset().union(*(EXPORTED[metric] for metric, _ in found.selectors))
    for metric, filters in found.selectors:
        assert filters <= EXPORTED[metric], metric
    assert found.grouping <= of_metrics | PROMETHEUS_OWN
    told = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", said))
    aggregated = re.match(r"\s*(sum|min|max|avg)\b", query)
    assert told <= (found.grouping if aggregated else of_metrics | PROMETHEUS_OWN)


def test_counters_are_asked_for_by_rate() -> None:
    """The value of a counter says only how long ago it began."""
    for query, _ in [*QUERIES, *ALERTS]:
        for counter in re.findall(r"\w+_total\b", query):
            assert re.search(rf"(rate|increase)\({counter}(\{{[^}}]*\}})?\[", query), query


def test_variables_are_defined_and_ask_for_what_is_exported() -> None:
    variables = {v["name"]: v for v in DASHBOARD["templating"]["list"]}
    assert variables["datasource"]["type"] == "datasource"
    built_in = {"__rate_interval"}
    text = json.dumps([panel.get("targets") for panel in PANELS])
    used = set(re.findall(r"\$\{?(\w+)", text))
    assert used <= set(variables) | built_in
    metric, label = re.fullmatch(
        r"label_values\((\w+), (\w+)\)", variables["job"]["definition"]
    ).groups()  # type: ignore[union-attr]
    assert label in EXPORTED[metric]


def test_it_imports_structurally() -> None:
    """What Grafana 10 and later ask of a dashboard."""
    assert DASHBOARD["schemaVersion"] >= 38
    assert DASHBOARD["uid"]
    assert DASHBOARD["title"]
    assert "id" not in DASHBOARD  # it is the database's, and null or absent in a file
    ids = [panel["id"] for panel in PANELS]
    assert len(set(ids)) == len(ids)
    for panel in CHARTS:
        assert panel["type"] in {"timeseries", "stat", "state-timeline"}
        assert panel["title"]
        assert panel["description"]
        references = [target["refId"] for target in panel["targets"]]
        assert len(set(references)) == len(references) > 0
        for source in (panel["datasource"], *(t["datasource"] for t in panel["targets"])):
            assert source == {"type": "prometheus", "uid": "${datasource}"}


def test_panels_fill_the_grid_without_overlaps() -> None:
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in PANELS)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells)
    assert {x for x, _ in cells} == set(range(24))


@pytest.mark.parametrize(
    "topic",
    [
        "reduced_bytes",
        "losses",
        "probes",
        "spurious_resends",
        "job_slots",
        "stalled",
        "dropped",
        "lease",
        "connected",
    ],
)
def test_every_topic_has_a_panel(topic: str) -> None:
    assert any(topic in query for query, _ in QUERIES)


def test_the_alert_of_losses_counts_nothing_else() -> None:
    (expression,) = [rule["expr"] for rule in RULES if rule["alert"] == "InaPacketLoss"]
    counted = {metric for metric, _ in names(expression).selectors}
    assert counted == {"ina_worker_losses_total", "ina_worker_packets_total"}


def test_names_follow_the_conventions_of_prometheus() -> None:
    for family in families():
        assert re.fullmatch(
            r"ina_(switch|controller|job|member|worker|dataplane|tenant|torch)_[a-z_]+", family.name
        )
        assert family.documentation.endswith("."), family.name
        assert not re.search(r"_(ms|ns|us|s|kb|mb|total)$", family.name), "base units, by name"
        for sample in family.samples:
            assert (family.type == "counter") == sample.name.endswith("_total"), sample.name
            assert not {"job", "instance"} & sample.labels.keys(), "Prometheus has these itself"
    for one, other in itertools.combinations(families(), 2):
        assert one.name != other.name


def test_the_strict_parser_of_openmetrics_takes_them() -> None:
    """Prometheus itself asks for this format."""

    class All(Collector):
        def collect(self) -> list[Metric]:
            return families()

    registry = CollectorRegistry()
    registry.register(All())
    parse: Any = text_string_to_metric_families
    write: Any = generate_latest
    parsed = list(parse(write(registry).decode()))
    assert {family.name for family in parsed} == {family.name for family in families()}


@pytest.mark.parametrize(
    "query",
    ["", "1 + 1", "rate(ina_x[5m]", "frobnicate(ina_x)", 'ina_x{a="1" b="2"}', "sum(ina_x))"],
)
def test_a_malformed_query_is_found(query: str) -> None:
    with pytest.raises(PromqlError):
        names(query)


def test_names_in_a_query() -> None:
    found = names('sum by (a, b) (rate(m_total{c="x,y{}", d!~"z"}[5m])) / on (e) other > 0.5')
    assert found.selectors == [("m_total", frozenset({"c", "d"})), ("other", frozenset())]
    assert found.grouping == {"a", "b", "e"}
