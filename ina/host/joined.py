"""What a session that has joined a job has from its controller, and how it is told."""

from __future__ import annotations

from dataclasses import dataclass

from ina import __version__
from ina.extension.host import TransportStats
from ina.host import failure
from ina.host.link import SwitchLink
from ina.host.member.client import ControllerClient
from ina.host.member.join import Grant
from ina.host.thread_driver import ThreadDriver
from ina.host.ticket import Ticket


@dataclass(frozen=True)
class Joined:
    """Its place, and whom it keeps it by."""

    grant: Grant[SwitchLink]
    client: ControllerClient
    driver: ThreadDriver

    def describe(self, stats: TransportStats) -> str:
        """Return who reaches the switch how: transport, addresses, window, build, controller.

        The line of the log that is asked for first when a job is slow.
        """
        ticket, link = self.grant.ticket, self.grant.link
        multicast = ", results by IP multicast" if link.is_listening else ""
        verified = "" if ticket.verify == "off" else f"; sums verified ({ticket.verify})"
        threads = f"{stats.threads} thread{'s' if stats.threads > 1 else ''}"
        return (
            f"{failure.who(ticket)} reaches the switch over {link.name}:"
            f" from {link.own}{multicast}; window {stats.window} packets, at most"
            f" {stats.in_flight_limit} in flight; {ticket.values_per_packet} values a packet;"
            f" {threads}{verified}; receive buffer {stats.receive_buffer_bytes} bytes;"
            f" job number {ticket.job}, epoch {ticket.epoch}{_trees(ticket)};"
            f" controller {self.client.address}; ina {__version__}"
        )


def _trees(ticket: Ticket) -> str:
    """Of a job over several switches: where this worker is in each tree."""
    if ticket.is_at_one_switch:
        return ""
    places = (
        f"lanes {tree.lanes_text} as child {tree.worker} of {tree.where}" for tree in ticket.trees
    )
    return f"; summed in trees: {', '.join(places)}"
