"""What neighbours say of themselves by LLDP, beside what the file says. Pure.

Input is what ``lldpcli show neighbors -f json0`` or ``-f json`` prints on a switch (lldpd, as on
SONiC and Cumulus) or on a host.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ina.fabric.errors import FabricError
from ina.fabric.graph import Fabric

_LAST_NUMBER = re.compile(r"(\d+)\D*$")


@dataclass(frozen=True)
class Neighbour:
    """One that a switch hears at one of its ports."""

    port: str
    """The switch's, as lldpd calls it: ``Ethernet4``, ``swp9``, ``leaf1-p9``."""
    name: str
    """The neighbour's system name."""
    their_port: str
    """Empty: it does not say."""


def read_neighbours(path: Path) -> list[Neighbour]:
    """Raises :class:`FabricError`: it cannot be read, or is not what lldpcli prints."""
    try:
        document = json.loads(path.read_text("utf-8"))
        return list(_neighbours(document["lldp"]))
    except OSError as error:
        raise FabricError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError):
        raise FabricError(f"{path}: not what `lldpcli show neighbors -f json` prints") from None


def _neighbours(lldp: Any) -> Iterator[Neighbour]:
    """Both of lldpd's forms: objects and lists of one, names as keys or as values."""
    for part in lldp if isinstance(lldp, list) else [lldp]:
        interfaces = part["interface"]
        if isinstance(interfaces, dict):
            interfaces = [{"name": name, **it} for name, it in interfaces.items()]
        for it in interfaces:
            if "chassis" not in it:  # json: {"eth0": {...}}
                ((name, inner),) = it.items()
                it = {"name": name, **inner}
            chassis, port = _first(it["chassis"]), _first(it["port"])
            yield Neighbour(str(it["name"]), _name(chassis), _port(port))


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def _name(chassis: Any) -> str:
    if "name" in chassis:
        return _text(chassis["name"])
    (name,) = chassis
    return str(name)


def _port(port: Any) -> str:
    return _text(port.get("descr") or port.get("id") or "")


def _text(value: Any) -> str:
    value = _first(value)
    return str(value["value"]) if isinstance(value, dict) else str(value)


def differences(fabric: Fabric, heard: Mapping[str, list[Neighbour]]) -> Iterator[str]:
    """Lines for people: links of the file that nobody hears, neighbours that the file has not, and
    other ports. ``heard``: by switch; of others nothing can be said."""
    for link in fabric.links:
        one, other = link.switches
        for name, port, there in ((one, link.ports[0], other), (other, link.ports[1], one)):
            if name not in heard:
                continue
            at = [it for it in heard[name] if _is(it.name, there)]
            if not at:
                yield f"link {one}-{other}: {name} hears nothing of {there}"
            elif all(_number(it.port) != _number(str(port)) for it in at):
                yield (
                    f"link {one}-{other}: the file says port {port} of {name}, and {there} is heard"
                    f" at {', '.join(it.port for it in at)}"
                )
    joined = {frozenset(link.switches) for link in fabric.links}
    for name, neighbours in heard.items():
        for it in neighbours:
            known = next((other for other in fabric.switches if _is(it.name, other)), None)
            if known is not None and frozenset((name, known)) not in joined:
                yield f"{name} hears {known} at {it.port}, and the file has no link between them"


def _is(system_name: str, switch: str) -> bool:
    """With or without a domain."""
    return switch in (system_name, system_name.partition(".")[0])


def _number(port: str) -> str:
    """``Ethernet4``, ``leaf1-p4`` and ``4`` are one; a name without number is itself."""
    found = _LAST_NUMBER.search(port)
    return port if found is None else found[1]
