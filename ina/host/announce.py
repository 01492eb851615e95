"""What a worker has chosen, in one log line: the first that is asked for when a job is slow."""

from __future__ import annotations

from ina import __version__
from ina._native.host import TransportStats
from ina.host import failure
from ina.host.join import Place


def describe_place(place: Place, stats: TransportStats, controller: str) -> str:
    """Return who reaches the switch how: transport, addresses, window, build, controller."""
    ticket, (host, port) = place.ticket, place.link.address
    multicast = ", results by IP multicast" if place.link.is_listening else ""
    threads = f"{stats.threads} thread{'s' if stats.threads > 1 else ''}"
    return (
        f"{failure.who(ticket)} reaches the switch over {place.link.name}:"
        f" from {host}:{port}{multicast}; window {stats.window} packets, at most"
        f" {stats.in_flight_limit} in flight; {ticket.values_per_packet} values a packet;"
        f" {threads}; receive buffer {stats.receive_buffer_bytes} bytes; job number {ticket.job},"
        f" epoch {ticket.epoch}; controller {controller}; ina {__version__}"
    )
