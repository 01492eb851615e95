"""``ina fabric make``: a fabric of a known shape, as tables for the controller's file."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address

from ina.fabric.graph import Fabric

FIRST_SWITCH = IPv4Address("10.255.0.1")
FIRST_GRPC_PORT = 50051


def tables(fabric: Fabric, said: str) -> Iterator[str]:
    """Lines of TOML. Where switches are reached is made up, for people to change."""
    yield f"# {said}"
    yield "# Change grpc_addr and data_host to where your switches are."
    for number, name in enumerate(fabric.switches):
        yield ""
        yield "[[switch]]"
        yield f'name = "{name}"'
        yield f'grpc_addr = "127.0.0.1:{FIRST_GRPC_PORT + number}"'
        yield f'data_host = "{FIRST_SWITCH + number}"'
    for link in fabric.links:
        one, other = link.switches
        yield ""
        yield "[[link]]"
        yield f'switches = ["{one}", "{other}"]'
        yield f"ports = [{link.ports[0]}, {link.ports[1]}]"
        yield f"rate_gbit = {link.rate_bits_per_s / 1e9:g}"
    for address, place in fabric.hosts.items():
        yield ""
        yield "[[host]]"
        yield f'address = "{address}"'
        yield f'switch = "{place.switch}"'
        yield f"port = {place.port}"
        yield f"rate_gbit = {place.rate_bits_per_s / 1e9:g}"
