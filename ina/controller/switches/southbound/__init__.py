"""Which protocol a configured switch is driven through."""

from __future__ import annotations

from pathlib import Path

from ina.controller.config import Config, SwitchConfig
from ina.controller.errors import ConfigError
from ina.p4 import CompiledProgram
from ina.p4.catalogue import find
from ina.rpc.tls import TlsFiles
from ina.tables.p4runtime import P4RuntimeSession
from ina.tables.session import SwitchSession


async def connect(config: Config, switch: SwitchConfig, *, standby: bool) -> SwitchSession:
    """Connects to one of the configuration's switches.

    ``standby``: where another controller is primary, go on as a backup; otherwise that is an error.

    Raises :class:`~ina.tables.errors.SwitchError`, :class:`~ina.rpc.tls.TlsError`,
    :class:`~ina.errors.MissingToolError` (BFRuntime without the SDE's client).
    """
    if switch.southbound == "bfrt":
        from ina.controller.switches.southbound.tofino import TofinoSession

        return await TofinoSession.of_config(config, switch, standby=standby)
    return await P4RuntimeSession.connect(
        switch.grpc_addr,
        switch.device_id,
        _program(switch),
        election_id=switch.election_id,
        tls=switch_tls(config),
        standby=standby,
    )


def switch_tls(config: Config) -> TlsFiles:
    """The controller's files towards its switches."""
    return TlsFiles(
        config.switch_tls.cert, config.switch_tls.key, config.switch_tls.ca, "switch_tls."
    )


def check_program(config: Config) -> None:
    """Looks for the files that its switches name. Raises :class:`ConfigError`."""
    for switch in config.switches:
        _check_files(switch, config.key_of(switch))


def _check_files(switch: SwitchConfig, key: str = "switch") -> None:
    for name in ("p4info", "pipeline"):
        path = getattr(switch, name)
        if path and not Path(path).is_file():
            raise ConfigError(f"{key}.{name}: {path}: no such file")


def _program(switch: SwitchConfig) -> CompiledProgram:
    """What P4Runtime sets; on a Tofino its device file stands where BMv2's JSON does."""
    if not switch.is_tofino:
        return find(switch.runs)
    _check_files(switch)
    return CompiledProgram(Path(switch.p4info), Path(switch.pipeline), "")
