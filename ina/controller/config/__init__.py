"""The controller's TOML file. Unknown keys are refused; an error names the file and the key."""

from __future__ import annotations

from ina.controller.config.checks import builds_of
from ina.controller.config.fabric import HostConfig, LinkConfig
from ina.controller.config.networks import USUAL_NETWORK, device_rings_of, network_of, rings_of
from ina.controller.config.reading import load_config, make_config, path_mtu, with_build
from ina.controller.config.rules import JobRule, RoutingConfig, WindowsConfig
from ina.controller.config.tables import (
    DEFAULT_BFRT,
    DEFAULT_JOB_SLOTS,
    DEFAULT_LEASE_S,
    DEFAULT_LISTEN,
    DEFAULT_NAME,
    DEFAULT_SWITCH,
    EMBEDDED_LEASE_S,
    TARGET_WINDOWS,
    Config,
    JobsConfig,
    OperatorsConfig,
    StoreConfig,
    SwitchConfig,
    TenantConfig,
    TlsConfig,
)

__all__ = [
    "DEFAULT_BFRT",
    "DEFAULT_JOB_SLOTS",
    "DEFAULT_LEASE_S",
    "DEFAULT_LISTEN",
    "DEFAULT_NAME",
    "DEFAULT_SWITCH",
    "EMBEDDED_LEASE_S",
    "TARGET_WINDOWS",
    "USUAL_NETWORK",
    "Config",
    "HostConfig",
    "JobRule",
    "JobsConfig",
    "LinkConfig",
    "OperatorsConfig",
    "RoutingConfig",
    "StoreConfig",
    "SwitchConfig",
    "TenantConfig",
    "TlsConfig",
    "WindowsConfig",
    "builds_of",
    "device_rings_of",
    "load_config",
    "make_config",
    "network_of",
    "path_mtu",
    "rings_of",
    "with_build",
]
