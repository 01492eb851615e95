"""Reads the file: defaults that other keys imply, errors that name the file and the key."""

from __future__ import annotations

import logging
import socket
import sys
from pathlib import Path
from typing import Any

import msgspec

from ina import modes
from ina.controller.config.checks import builds_of, problems, values_problems
from ina.controller.config.tables import (
    DEFAULT_BFRT,
    TOFINOS,
    USUAL_RINGS,
    Config,
    SwitchConfig,
)
from ina.controller.config.topology import with_topology
from ina.controller.errors import ConfigError
from ina.document import DocumentError, convert
from ina.errors import InvalidInputError
from ina.fabric.topology_json import TopologyError
from ina.p4 import names
from ina.p4.builds import largest_build, socket_mtu_bytes, usual_build
from ina.p4.catalogue import values_of
from ina.p4.names import DEFAULT_MODE
from ina.protocol.bth import ROCE_UDP_PORT

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

_log = logging.getLogger(__name__)

AUTO = 0
"""As ``switch.values``: what the path to the switch bears."""


def load_config(path: Path) -> Config:
    """Reads and checks a file. Raises :class:`ConfigError` with the file and the key."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # beside its own: bad UTF-8, a number too long
        raise ConfigError(f"{path}: not TOML: {error}") from None
    return make_config(document, str(path), path.parent)


def make_config(document: dict[str, Any], source: str, folder: Path | None = None) -> Config:
    """Checks a document; ``source`` is named in errors. Raises :class:`ConfigError`.

    ``folder``: where a ``topology`` is looked for that is no absolute path; else in this one.
    """
    if "topology" in document:
        try:
            document = with_topology(document, folder or Path())
        except TopologyError as error:
            raise ConfigError(f"{source}: topology: {error}") from None
    try:
        config = convert(_with_defaults(document), Config)
    except DocumentError as error:
        said = str(error)
        if not isinstance(document.get("switch"), list):
            said = said.replace("switch[0]", "switch", 1)
        raise ConfigError(f"{source}: {said}") from None
    for key, problem in problems(config):
        raise ConfigError(f"{source}: {key}: {problem}")
    return config


def _with_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its switches as a list, and what their targets and southbounds imply."""
    switches = document.get("switch")
    if switches is None:
        return document
    listed = switches if isinstance(switches, list) else [switches]
    return {**document, "switch": [_switch_with_defaults(switch) for switch in listed]}


def _switch_with_defaults(switch: Any) -> Any:
    if not isinstance(switch, dict):
        return switch
    mode = switch.get("mode", DEFAULT_MODE)
    implied = implied_by(mode) if mode in names.MODES else {}
    if switch.get("target") in TOFINOS:
        implied["values"] = values_of(DEFAULT_MODE, switch["target"])[0]
    if switch.get("southbound") == "bfrt":
        implied |= {"grpc_addr": DEFAULT_BFRT, "device_id": 0}
    return {**implied, **switch}


def implied_by(mode: str) -> dict[str, Any]:
    """Keys of ``[switch]`` that follow from its program's mode, where they are not given."""
    implied: dict[str, Any] = {"values": usual_build(mode)}
    if modes.of(mode).framing != modes.Mode.framing:
        implied["data_udp_port"] = ROCE_UDP_PORT
    if "rings" in modes.of(mode).switch_keys:
        implied["rings"] = USUAL_RINGS
    return implied


def with_build(config: Config, mtu_bytes: int | None = None) -> Config:
    """``config`` with numbers of values: where it says 0, the largest build that the path bears.

    The controller's own path stands for the workers': the address is the one that they send to.
    Where theirs is narrower, the number must be given. ``mtu_bytes``: of the path, where it is
    known.

    Raises :class:`ConfigError`: there is no way to the switch, no build fits, or the builds of two
    switches that a link joins differ.
    """
    switches = tuple(
        _switch_with_build(switch, config.key_of(switch), mtu_bytes) for switch in config.switches
    )
    built = msgspec.structs.replace(config, switches=switches)
    for key, problem in values_problems(built):
        raise ConfigError(f"{key}: {problem}")
    return built


def _switch_with_build(switch: SwitchConfig, key: str, mtu_bytes: int | None) -> SwitchConfig:
    if switch.values != AUTO:
        return switch
    mtu = path_mtu(switch.data_host, switch.data_udp_port) if mtu_bytes is None else mtu_bytes
    try:
        values = largest_build(mtu, builds_of(switch))
    except InvalidInputError as error:
        raise ConfigError(f"{key}.values: {error}") from None
    _log.info("%s.values: %d, for an MTU of %d towards %s", key, values, mtu, switch.data_host)
    return msgspec.structs.replace(switch, values=values)


def path_mtu(host: str, port: int) -> int:
    """Largest IP packet, in bytes, that the kernel sends whole to an IPv4 address.

    Raises :class:`ConfigError`: no route.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((host, port))
            return socket_mtu_bytes(probe)
        except OSError as error:
            raise ConfigError(f"switch.data_host: {host}: {error.strerror}") from None
