"""The controller's TOML file. Unknown keys are refused; an error names the file and the key."""

from __future__ import annotations

import re
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from ina.controller.errors import ConfigError
from ina.p4 import names
from ina.protocol.spec import UDP_PORT, VALUES_PER_PACKET_BUILDS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found,unused-ignore]

DEFAULT_LISTEN = "127.0.0.1:17700"
DEFAULT_SWITCH = "127.0.0.1:9559"
DEFAULT_JOB_SLOTS = 512

UdpPortNumber = Annotated[int, Meta(ge=1, le=0xFFFF)]
SwitchPortNumber = Annotated[int, Meta(ge=1, le=510)]


class SwitchConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The switch that this controller programs."""

    grpc_addr: str = DEFAULT_SWITCH
    """host:port of its P4Runtime server; 9559 is P4Runtime's registered port."""
    device_id: Annotated[int, Meta(ge=1)] = 1
    election_id: Annotated[int, Meta(ge=1)] = 1
    """The controller with the highest one is primary."""
    values: int = 256
    """Values a packet of the P4 build to set: 64 or 256."""
    data_host: str = "127.0.0.1"
    """IPv4 address that workers send to."""
    data_udp_port: UdpPortNumber = UDP_PORT
    data_port: SwitchPortNumber = 1
    """Port number that workers are behind which ``hosts`` does not list."""


class JobsConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """What a job gets."""

    slots: Annotated[int, Meta(ge=2, le=names.SLOTS_TOTAL, multiple_of=2)] = DEFAULT_JOB_SLOTS
    """Slots reserved for each job; half of them is its window in packets."""
    unjoined_s: Annotated[float, Meta(gt=0)] = 60.0
    """A job that was created and that nobody joins ends after this time."""


class HostConfig(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Where a host is attached to the switch."""

    address: str
    """IPv4."""
    port: SwitchPortNumber
    mac: str = ""
    """02:00:0a:00:00:01; empty: derived from the address, as behind a UDP port."""


class Config(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """The whole file."""

    listen: str = DEFAULT_LISTEN
    """host:port of the gRPC service for workers and operators; port 0: any free one."""
    switch: SwitchConfig = msgspec.field(default_factory=SwitchConfig)
    jobs: JobsConfig = msgspec.field(default_factory=JobsConfig)
    hosts: tuple[HostConfig, ...] = ()

    def endpoints(self) -> dict[IPv4Address, tuple[int, int | None]]:
        """By host address: its switch port and MAC address (None: derived)."""
        return {
            IPv4Address(host.address): (
                host.port,
                int(host.mac.replace(":", ""), 16) if host.mac else None,
            )
            for host in self.hosts
        }


def load_config(path: Path) -> Config:
    """Reads and checks a file. Raises :class:`ConfigError` with the file and the key."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None
    return make_config(document, str(path))


def make_config(document: dict[str, Any], source: str) -> Config:
    """Checks a document; ``source`` is named in errors. Raises :class:`ConfigError`."""
    try:
        config = msgspec.convert(document, Config)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{source}: {_explain(str(error))}") from None
    for key, problem in _problems(config):
        raise ConfigError(f"{source}: {key}: {problem}")
    return config


def _problems(config: Config) -> list[tuple[str, str]]:
    """What types alone cannot say, as (key, problem)."""
    found = []
    for key, address in (("listen", config.listen), ("switch.grpc_addr", config.switch.grpc_addr)):
        host, colon, port = address.rpartition(":")
        if not (colon and host and port.isdecimal() and int(port) <= 0xFFFF):
            found.append((key, f"{address!r} is not host:port"))
    if config.switch.values not in VALUES_PER_PACKET_BUILDS:
        builds = " or ".join(map(str, VALUES_PER_PACKET_BUILDS))
        found.append(("switch.values", f"{config.switch.values} is not {builds}"))
    if not _is_ipv4(config.switch.data_host):
        found.append(("switch.data_host", f"{config.switch.data_host!r} is not an IPv4 address"))
    seen = set()
    for index, host_config in enumerate(config.hosts):
        key = f"hosts[{index}]"
        if not _is_ipv4(host_config.address):
            found.append((f"{key}.address", f"{host_config.address!r} is not an IPv4 address"))
        if host_config.address in seen:
            found.append((f"{key}.address", f"{host_config.address} is listed twice"))
        seen.add(host_config.address)
        if host_config.mac and not re.fullmatch(
            r"([0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}", host_config.mac
        ):
            found.append((f"{key}.mac", f"{host_config.mac!r} is not a MAC address"))
    return found


def _is_ipv4(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def _explain(error: str) -> str:
    """msgspec's ``Expected `int` - at `$.switch.values``` with the key first."""
    reason, _, place = error.partition(" - at ")
    key = place.strip("`").removeprefix("$").lstrip(".")
    unknown = re.fullmatch(r"Object contains unknown field `(.*)`", reason)
    if unknown is not None:
        return f"{key + '.' if key else ''}{unknown[1]}: unknown key"
    return f"{key}: {reason[:1].lower()}{reason[1:]}" if key else reason
