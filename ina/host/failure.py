"""Words for a reduction that does not finish: job, rank, sequence number, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass

from ina.extension.host import Corruption, EngineStats, StallReport
from ina.host.node import NodePlace
from ina.host.ticket import Ticket
from ina.protocol.collective import Collective, Submitted

SPENT = (
    "a reliable connection to the next worker of the ring has failed: for all its repetitions"
    " nobody acknowledged what this worker sent; a worker was later than that (INA_RDMA_TIMEOUT_S"
    " and INA_RDMA_RETRIES say how late it may be), or the switch or a cable is gone"
)
"""Of connections that try no more. Whose fault it is their devices do not know."""


@dataclass(frozen=True)
class Situation:
    """What is seen of a session whose reduction does not finish."""

    stats: EngineStats
    node: NodePlace | None = None  # this host's, which it sends to
    is_shm: bool = False  # it sends over shared memory
    said: str | None = None  # by the controller about it


def describe_stall(ticket: Ticket, report: StallReport, now: Situation) -> str:
    """Return one line for a session that gave up."""
    seq = f"; oldest unanswered sequence number {report.oldest_seq}" if report.anything_sent else ""
    return (
        f"{who(ticket)}: no result for {report.waited_ns / 1e9:.1f} s{seq} "
        f"({report.in_flight} packets in flight, {_progress(now.stats)}): "
        f"{now.said or _cause(ticket, now, report.oldest_seq)}"
    )


def describe_wait(ticket: Ticket, timeout_s: float, oldest_seq: int, now: Situation) -> str:
    """Return one line for a wait that ended before the reduction did; see describe_stall()."""
    return (
        f"{who(ticket)}: not done after waiting {timeout_s:g} s "
        f"({now.stats.in_flight} packets in flight, {_progress(now.stats)}): "
        f"{now.said or _cause(ticket, now, oldest_seq)}"
    )


def describe_mismatch(ticket: Ticket, number: int, submitted: list[Submitted]) -> str:
    """Return one line for a result that holds something else than operation `number`."""
    own = next((str(Collective(*what)) for own, what in submitted if own == number), "")
    what = f"all-reduce {number}{f' ({own})' if own else ''}"
    return (
        f"{who(ticket)}: ranks differ: the result of {what} holds what another rank has submitted "
        f"instead, or before it; do all ranks reduce the same sizes and dtypes in the same order?"
    )


def describe_corruption(ticket: Ticket, found: Corruption) -> str:
    """Return one line for results that were not the sums of what the workers had sent."""
    return (
        f"{who(ticket)}: {found.results} results of all-reduce {found.operation}, sequence number"
        f" {found.seq}, are not the sum of what the workers sent ({found.all_results} results of"
        f" this worker's in all): {_where_corrupted(found)}"
    )


def _where_corrupted(found: Corruption) -> str:
    if found.own_is_missing:
        return "the slot does not hold this worker's contribution as it was sent"
    if found.first_value >= 0 and found.same:
        return f"value {found.first_value} of the slot is not what this worker, the only one, sent"
    if found.same:
        return (
            "each time the same, so the slot holds it: its memory, or a contribution on its way"
            " to the switch, has been changed or forged, or a worker has another key, or has been"
            " told another scale by a damaged result"
        )
    if found.results > 1:
        return "each time something else: they are changed on their way from the switch"
    return "they are many, of many packets: something changes packets, or forges them"


def who(ticket: Ticket) -> str:
    """Return whose session it is."""
    return f"job {ticket.job_name!r} rank {ticket.rank} of {ticket.world_size}"


def _progress(stats: EngineStats) -> str:
    worker = stats.worker
    results = worker.chunks_done + worker.exponent_rounds
    if results == 0:
        return "none completed"
    return f"{results} completed, last sequence number {worker.last_seq}"


def _cause(ticket: Ticket, now: Situation, seq: int) -> str:
    """`seq`: the number of the packet that has waited longest."""
    stats, node, is_shm = now.stats, now.node, now.is_shm
    where = "shared memory" if is_shm else ticket.node_of(seq)
    if node is not None:
        where = f"this host's node, in rank {node.rank}'s process"
    worker = stats.worker
    results = worker.chunks_done + worker.exponent_rounds
    if stats.spent:
        return SPENT
    if stats.refused and not worker.packets_received:
        if node is not None:
            return f"{where}, has closed the shared memory"
        if is_shm:
            return "the switch has closed the shared memory"
        return f"nothing listens at the switch's address {where}"
    if worker.mismatched:
        return (
            f"{worker.mismatched} results did not fit what was waited for: something changes "
            "packets on their way, or the switch does not run this version's program"
        )
    if results == 0:
        source = f"the switch at {where}" if node is None else where
        return (
            f"nothing came from {source}; another worker is missing, or the switch "
            "cannot be reached or does not admit this worker"
        )
    if not ticket.is_at_one_switch:
        return (
            "another worker has stopped or does not reduce the same array, or packets no longer"
            f" reach {where}, or from there a switch above"
        )
    return (
        "another worker has stopped or does not reduce the same array, or packets no longer reach "
        "the switch"
    )
