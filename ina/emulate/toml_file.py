"""Reads ina's own topology file (TOML). Unknown keys are refused; docs/emulate.md has them all."""

from __future__ import annotations

import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ina.emulate.assemble import Draft, assemble, make_mac, parse_interface
from ina.emulate.errors import TopologyError
from ina.emulate.topology import DEFAULT_QUEUE_KIB, Host, Switch, SwitchKind, Topology
from ina.fabric.topology_json import convert

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

Rate = Annotated[float, Meta(ge=0, lt=1)]
Mbit = Annotated[float, Meta(gt=0, le=100_000)]
MAX_RANKS = 64
QueueKib = Annotated[int, Meta(ge=4, le=1 << 20)]


class _File(msgspec.Struct, forbid_unknown_fields=True):
    hosts: dict[str, dict[str, Any]]
    switches: dict[str, dict[str, Any]]
    links: list[dict[str, Any]]
    name: str = ""
    switch: SwitchKind = "soft"
    aggregator: str | None = None
    aggregator_address: str | None = None
    defaults: dict[str, Any] = {}
    """Of links."""
    controller: dict[str, Any] = {}


class _Host(msgspec.Struct, forbid_unknown_fields=True):
    ip: str
    mac: str = ""
    commands: list[str] = []
    ranks: Annotated[int, Meta(ge=1, le=MAX_RANKS)] = 1


class _Switch(msgspec.Struct, forbid_unknown_fields=True):
    kind: SwitchKind | None = None
    loss_rate: Rate = 0.0
    loss_seed: Annotated[int, Meta(ge=0)] = 0
    runtime_json: str = ""


class _Cable(msgspec.Struct, forbid_unknown_fields=True):
    bandwidth_mbit: Mbit | None = None
    queue_kib: QueueKib = DEFAULT_QUEUE_KIB
    loss_rate: Rate = 0.0


class _Link(_Cable, forbid_unknown_fields=True, kw_only=True):
    ends: list[str]


def load_toml(path: Path, *, ignore_runtime: bool = False) -> Topology:
    """Raises :class:`TopologyError` with the file and the key."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise TopologyError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # beside its own: bad UTF-8, a number too long
        raise TopologyError(f"{path}: not TOML: {error}") from None
    file = convert(path, "", document, _File)
    convert(path, "defaults", file.defaults, _Cable)
    hosts = []
    for name, table in file.hosts.items():
        key = f"hosts.{name}"
        host = convert(path, key, table, _Host)
        address = parse_interface(path, f"{key}.ip", host.ip)
        mac = make_mac(path, f"{key}.mac", host.mac, address.ip)
        hosts.append(Host(name, address, mac, tuple(host.commands), ranks=host.ranks))
    switches = []
    for name, table in file.switches.items():
        switch = convert(path, f"switches.{name}", table, _Switch)
        foreign = switch.runtime_json and not ignore_runtime
        runtime = path.parent / switch.runtime_json if foreign else None
        kind = switch.kind or file.switch
        switches.append(Switch(name, kind, switch.loss_rate, switch.loss_seed, runtime))
    links: list[tuple[list[str], dict[str, Any]]] = []
    for index, table in enumerate(file.links):
        link = convert(path, f"links[{index}]", {**file.defaults, **table}, _Link)
        fields = msgspec.structs.asdict(link)
        links.append((fields.pop("ends"), fields))
    return assemble(
        Draft(
            source=path,
            name=file.name,
            hosts=hosts,
            switches=switches,
            links=links,
            aggregator=file.aggregator,
            aggregator_address=_address(path, file.aggregator_address),
            controller=file.controller,
        )
    )


def _address(path: Path, text: str | None) -> IPv4Address | None:
    try:
        return IPv4Address(text) if text is not None else None
    except ValueError:
        raise TopologyError(
            f"{path}: aggregator_address: {text!r} is not an IPv4 address"
        ) from None
