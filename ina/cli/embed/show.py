"""What the services of a process say of themselves, read from where it serves its metrics."""

from __future__ import annotations

import http.client
import time
import urllib.error
import urllib.request
from typing import Any

from prometheus_client.parser import text_string_to_metric_families
from rich.console import Group, RenderableType
from rich.text import Text

from ina.cli.common.output import table
from ina.embed.metrics import PREFIX
from ina.errors import UnavailableError
from ina.metrics import parse_address

_TIMEOUT_S = 5.0
_MOST_BYTES = 16 << 20
_TOTAL = "_total"


def read(address: str) -> str:
    """What is served at ``host:port``. Raises MetricsAddressError, UnavailableError."""
    parse_address(address)
    no_proxy = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline_s = time.monotonic() + _TIMEOUT_S
    text = b""
    try:
        with no_proxy.open(f"http://{address}/metrics", timeout=_TIMEOUT_S) as answer:
            while some := answer.read1(_MOST_BYTES):
                text += some
                if len(text) > _MOST_BYTES or time.monotonic() > deadline_s:
                    raise UnavailableError(f"{address}: no metrics: too many bytes, or too slow")
        return text.decode("utf-8", "replace")
    except urllib.error.URLError as error:
        raise UnavailableError(f"{address}: no metrics: {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(f"{address}: no metrics: {error or type(error).__name__}") from None


def services_of(text: str, address: str) -> list[dict[str, Any]]:
    """Of each service its rank, module, counters, and ``tables``: of each name its counters.

    Raises UnavailableError: `text` is not Prometheus', or no service is in it.
    """
    found: dict[tuple[int, int], dict[str, Any]] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if sample.name.startswith(PREFIX) and not sample.name.endswith("_created"):
                    key = (int(sample.labels["rank"]), int(sample.labels["module"]))
                    service = found.setdefault(
                        key, {"rank": key[0], "module": key[1], "tables": {}}
                    )
                    _add(service, sample.labels, sample.name, int(sample.value))
    except (ValueError, KeyError, IndexError, OverflowError) as error:
        raise UnavailableError(f"{address}: what it serves is no metrics: {error}") from None
    if not found:
        raise UnavailableError(f"{address}: no service of embeddings runs there")
    return [service for _, service in sorted(found.items())]


def _add(service: dict[str, Any], labels: dict[str, str], sample: str, value: int) -> None:
    name = sample.removeprefix(PREFIX).removesuffix(_TOTAL)
    if "direction" in labels:
        service[f"{labels['direction']}_{name}"] = value
    elif "table" in labels:
        service["tables"].setdefault(labels["table"], {})[name] = value
    else:
        service[name] = value


def view(services: list[dict[str, Any]]) -> RenderableType:
    """Of each service its counters by name, and a table of its tables."""
    parts: list[RenderableType] = []
    for service in services:
        parts += [Text()] if parts else []
        parts.append(Text(f"rank {service['rank']}, module {service['module']}"))
        for name, value in service.items():
            if name not in ("rank", "module", "tables"):
                parts.append(Text(f"  {name.replace('_', ' '):22}{value}"))
        columns = list(dict.fromkeys(key for row in service["tables"].values() for key in row))
        rows = [
            [name, *(row.get(key, "-") for key in columns)]
            for name, row in service["tables"].items()
        ]
        parts.append(table(["table", *(key.replace("_", " ") for key in columns)], rows))
    return Group(*parts)
