"""The controller's configuration."""

from __future__ import annotations

from fuzz.doors.memory_file import memory_file
from fuzz.doors.promise import promise, refusals
from ina.controller.config import Config, load_config
from ina.controller.errors import ConfigError


def enter(data: bytes) -> None:
    """Reads it. What it names (files, addresses) is not touched."""
    with memory_file(data) as path, refusals(ConfigError):
        config = load_config(path)
        promise(isinstance(config, Config) and config.switches, "a configuration has a switch")
