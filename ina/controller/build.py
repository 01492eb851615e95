"""``switch.values = 0``: the controller takes the largest build that the path to the switch bears.

Its own path stands for the workers': the address is the one that they send to. Where theirs is
narrower, the number must be given.
"""

from __future__ import annotations

import logging
import socket

import msgspec

from ina.controller.config import Config, builds_of
from ina.controller.errors import ConfigError
from ina.errors import InvalidInputError
from ina.p4.builds import largest_build, socket_mtu_bytes

_log = logging.getLogger(__name__)

AUTO = 0


def with_build(config: Config, mtu_bytes: int | None = None) -> Config:
    """``config`` with a number of values. ``mtu_bytes``: of the path, where it is known.

    Raises :class:`ConfigError`: there is no way to the switch, or no build fits.
    """
    switch = config.switch
    if switch.values != AUTO:
        return config
    mtu = path_mtu(switch.data_host, switch.data_udp_port) if mtu_bytes is None else mtu_bytes
    try:
        values = largest_build(mtu, builds_of(switch.target))
    except InvalidInputError as error:
        raise ConfigError(f"switch.values: {error}") from None
    _log.info("switch.values: %d, for an MTU of %d towards %s", values, mtu, switch.data_host)
    return msgspec.structs.replace(config, switch=msgspec.structs.replace(switch, values=values))


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
