"""Where a plan's nodes are, and the secret that they share with who asks: a file for all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ina.document import DocumentError, convert
from ina.infer.errors import PlacesError
from ina.infer.placing import Surroundings
from ina.infer.plan import InferencePlan
from ina.protocol.peer import Peer


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    plan: str
    digest: str
    key: str  # 16 hexadecimal digits
    nodes: dict[str, str]  # host:port by name


def around(plan: InferencePlan, nodes: Mapping[str, str], key: int | None = None) -> Surroundings:
    """`nodes`: IPv4 address and UDP port of each, as "host:port". Raises PlacesError."""
    names = plan.spec.nodes
    if set(nodes) != set(names):
        raise PlacesError(f"places of {', '.join(nodes) or 'nobody'}: want {', '.join(names)}")
    peers = []
    for name in names:
        host, colon, port = nodes[name].rpartition(":")
        try:
            if not colon or not 0 < int(port) < 65536:
                raise ValueError
            peers.append(Peer.at((host, int(port))))
        except ValueError:
            raise PlacesError(f"place of {name!r}: {nodes[name]!r}: want IPV4:PORT") from None
    return Surroundings(secrets.randbits(64) if key is None else key, tuple(peers))


def write_places(path: Path, plan: InferencePlan, where: Surroundings) -> None:
    """For the owner alone to read. Raises PlacesError."""
    nodes = {
        name: f"{peer.place[0]}:{peer.udp_port}"
        for name, peer in zip(plan.spec.nodes, where.peers, strict=True)
    }
    document = _File(
        plan=plan.spec.name, digest=f"{plan.digest:08x}", key=f"{where.key:016x}", nodes=nodes
    )
    text = msgspec.json.format(msgspec.json.encode(document)) + b"\n"
    try:
        path.unlink(missing_ok=True)
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
    except OSError as error:
        raise PlacesError(f"{path}: {error.strerror}") from None


def read_places(path: Path, plan: InferencePlan) -> Surroundings:
    """Raises PlacesError: it cannot be read, or is of another plan, or of other weights."""
    try:
        found = convert(msgspec.json.decode(path.read_bytes()), _File)
        key = int(found.key, 16)
    except OSError as error:
        raise PlacesError(f"{path}: {error.strerror}") from None
    except (DocumentError, msgspec.DecodeError, ValueError, RecursionError) as error:
        raise PlacesError(f"{path}: {error}") from None
    if (found.plan, found.digest) != (plan.spec.name, f"{plan.digest:08x}"):
        raise PlacesError(
            f"{path}: places of plan {found.plan!r} {found.digest}, not of {plan.spec.name!r}"
            f" {plan.digest:08x}: the plan or its arrays have changed since"
        )
    try:
        return around(plan, found.nodes, key)
    except PlacesError as error:
        raise PlacesError(f"{path}: {error}") from None
