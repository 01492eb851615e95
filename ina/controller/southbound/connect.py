"""Which protocol a configured switch is driven through."""

from __future__ import annotations

from ina.controller.config import Config
from ina.controller.secure import switch_tls
from ina.controller.southbound.interface import SwitchSession
from ina.controller.southbound.p4runtime import P4RuntimeSession
from ina.controller.southbound.p4runtime_switch import P4RuntimeSwitch
from ina.p4 import compiled


async def connect(config: Config, *, standby: bool) -> SwitchSession:
    """Connects to ``config.switch``.

    ``standby``: where another controller is primary, go on as a backup; otherwise that is an error.

    Raises :class:`~ina.controller.errors.SwitchError`, :class:`~ina.rpc.tls.TlsError`.
    """
    switch = config.switch
    session = await P4RuntimeSession.connect(
        switch.grpc_addr,
        switch.device_id,
        election_id=switch.election_id,
        tls=switch_tls(config),
        standby=standby,
    )
    return P4RuntimeSwitch(session, compiled(switch.values))
