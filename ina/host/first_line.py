"""How a session that has joined a job reaches its switch, in words."""

from __future__ import annotations

from ina import __version__
from ina.extension.host import TransportStats
from ina.host import failure
from ina.host.link import SwitchLink
from ina.host.member.client import ControllerClient
from ina.host.ticket import Ticket


def describe(
    ticket: Ticket, link: SwitchLink, client: ControllerClient, stats: TransportStats
) -> str:
    """Return who reaches the switch how: transport, addresses, window, build, controller.

    The line of the log that is asked for first when a job is slow.
    """
    multicast = ", results by IP multicast" if link.is_listening else ""
    verified = "" if ticket.verify == "off" else f"; sums verified ({ticket.verify})"
    threads = f"{stats.threads} thread{'s' if stats.threads > 1 else ''}"
    return (
        f"{failure.who(ticket)} reaches the switch over {link.name}:"
        f" from {link.own}{multicast}; window {stats.window} packets, at most"
        f" {stats.in_flight_limit} in flight; {ticket.values_per_packet} values a packet;"
        f" {threads}{verified}; receive buffer {stats.receive_buffer_bytes} bytes;"
        f" job number {ticket.job}, epoch {ticket.epoch}{_trees(ticket)};"
        f" controller {client.address}; ina {__version__}"
    )


def _trees(ticket: Ticket) -> str:
    """Of a job over several switches: where this worker is in each tree."""
    if ticket.is_at_one_switch:
        return ""
    places = (
        f"lanes {tree.lanes_text} as child {tree.worker} of {tree.where}" for tree in ticket.trees
    )
    return f"; summed in trees: {', '.join(places)}"
