"""Who may write: P4Runtime's primary is the client with the highest election id ever seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from finsy.proto import U128, p4r, rpc_code

from ina.switch.p4runtime.status import (
    StatusError,
    denied,
    invalid,
    not_found,
    precondition,
    unimplemented,
)

MAX_ROLES = 64
"""Names of roles: what is known of one (its highest election id) is never forgotten."""


@dataclass(eq=False)
class Client:
    """One StreamChannel. ``send`` must not block."""

    send: Callable[[p4r.StreamMessageResponse], None]
    role: str | None = None  # None: has not introduced itself yet
    election_id: int | None = None
    gone: bool = False
    """Its stream has ended; what it sent just before may still be on its way here."""


@dataclass
class _Role:
    clients: list[Client] = field(default_factory=list)
    highest: int | None = None  # election id ever seen
    primary: Client | None = None


class Arbitration:
    """The clients of one device, by role. The caller holds the device's lock."""

    def __init__(self, device_id: int) -> None:
        self._device_id = device_id
        self._roles: dict[str, _Role] = {}

    def update(self, client: Client, message: p4r.MasterArbitrationUpdate) -> None:
        """Take in a client's (new) election id and notify; a StatusError ends its stream."""
        if client.gone:
            raise StatusError(rpc_code.CANCELLED, "the stream has ended")
        if client.role is None:
            if message.device_id != self._device_id:
                raise not_found(f"no device {message.device_id}; this is {self._device_id}")
        elif message.device_id != self._device_id or message.role.name != client.role:
            raise precondition("device_id and role cannot change in a stream")
        if message.role.HasField("config"):
            raise unimplemented("role configuration")
        if len(self._roles) >= MAX_ROLES and message.role.name not in self._roles:
            raise StatusError(rpc_code.RESOURCE_EXHAUSTED, f"{MAX_ROLES} roles are known already")
        role = self._roles.setdefault(message.role.name, _Role())
        election_id = U128.decode(message.election_id) if message.HasField("election_id") else None
        if election_id is not None and any(
            other.election_id == election_id for other in role.clients if other is not client
        ):
            # finsy goes on as a backup when it reads "election id ... used".
            raise invalid(f"election id {election_id} is already used by another client")
        if client.role is None:
            client.role = message.role.name
            role.clients.append(client)
        client.election_id = election_id
        was_primary = role.primary is client
        if election_id is not None and (role.highest is None or election_id >= role.highest):
            role.highest = election_id
            role.primary = client
            self._notify(role, role.clients)
        elif was_primary:
            role.primary = None
            self._notify(role, role.clients)
        else:
            self._notify(role, [client])

    def leave(self, client: Client) -> None:
        """The client's stream has ended. Nobody is primary until somebody asks again."""
        client.gone = True
        if client.role is None:
            return
        role = self._roles[client.role]
        role.clients.remove(client)
        if role.primary is client:
            role.primary = None
            self._notify(role, role.clients)

    def is_primary(self, client: Client) -> bool:
        """Whether this stream's client may send packets."""
        return client.role is not None and self._roles[client.role].primary is client

    def require_primary(self, role_name: str, election_id: p4r.Uint128) -> None:
        """PERMISSION_DENIED unless this is the primary's election id."""
        role = self._roles.get(role_name)
        if role is None or role.primary is None:
            raise denied("there is no primary client")
        if role.primary.election_id != U128.decode(election_id):
            raise denied(f"election id {U128.decode(election_id)} is not the primary's")

    def primaries(self) -> list[Client]:
        """Those that packets to the controller go to."""
        return [role.primary for role in self._roles.values() if role.primary is not None]

    def _notify(self, role: _Role, clients: list[Client]) -> None:
        for client in clients:
            response = p4r.StreamMessageResponse()
            update = response.arbitration
            update.device_id = self._device_id
            if client.role:
                update.role.name = client.role
            if role.highest is not None:
                update.election_id.CopyFrom(U128.encode(role.highest))
            if client is role.primary:
                update.status.code = rpc_code.OK
                update.status.message = "primary"
            elif role.primary is not None:
                update.status.code = rpc_code.ALREADY_EXISTS
                update.status.message = "backup: another client is primary"
            else:
                update.status.code = rpc_code.NOT_FOUND
                update.status.message = "backup: there is no primary"
            client.send(response)
