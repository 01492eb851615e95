"""What a session counted."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ina.extension.host import TransportStats
from ina.host.sparse.counts import NO_BLOCKS, BlockCounts
from ina.modes.transports import RDMA, SOFT_RDMA
from ina.protocol.bth import BTH_BYTES
from ina.protocol.icrc import ICRC_BYTES

FRAME_OVERHEAD_BYTES = 42
"""Ethernet (14, no FCS), IPv4 (20) and UDP (8) headers around each packet's UDP payload."""

_ROCE_BYTES = BTH_BYTES + ICRC_BYTES
_AROUND_BYTES = {RDMA: _ROCE_BYTES, SOFT_RDMA: _ROCE_BYTES}
"""That packets of a transport have besides."""

_OF_NOW = frozenset(
    (
        *("last_seq", "in_flight", "window", "in_flight_limit", "srtt_ns", "rto_ns"),
        *("receive_buffer_bytes", "gso", "gro", "transport", "threads", "queues"),
    )
)


@dataclass(frozen=True)
class SessionStats:
    """Counts since the session began. Byte counts are UDP payload + 42 header bytes a packet."""

    packets_sent: int  # with retransmissions
    unclaimed_packets: int  # of those sent first: the window let them claim no shared slot
    packets_received: int
    bytes_sent: int
    bytes_received: int
    retransmissions: int
    # Each retransmission is one of these once its packet is answered (docs/host.md, "What became of
    # them"); those whose packet is not yet are what is left of `retransmissions`.
    losses: int  # needed: an earlier copy of the packet, or the answer to it, was lost
    spurious_resends: int  # not needed; sent because a later packet had been answered
    probes: int  # not needed; sent because nothing was heard: another worker was late
    overtaken: int  # retransmissions because the result of a packet sent later had come
    timeouts: int  # timer expiries; one can lead to several retransmissions
    shared_packets: int  # of those received, for several workers at once (IP multicast)
    duplicates: int  # results that had arrived before
    stale: int  # results of older chunks
    corrupted_sums: int  # results that were not the sum of what the workers sent
    refused_results: int  # malformed, of another job or worker, or not what was waited for
    damaged_results: int  # RoCEv2: not as their ICRC says, or for another queue pair
    icmp_errors: int  # "port unreachable" and the like; shared memory: the switch is gone
    send_drops: int  # packets that the kernel, or the ring, did not take
    ecn_marked: int  # results that met a long queue
    exponent_rounds: int  # that only agreed on exponents: without values, or guessed wrong
    guessed_chunks: int  # summed by an exponent that was guessed, right
    chunks_done: int
    bytes_done: int  # of the caller's arrays: what was reduced, without headers and repetitions
    operations_done: int
    last_seq: int  # sequence number of the last result
    in_flight: int
    window: int  # W, in packets
    in_flight_limit: int  # now: W, or fewer as the receive buffer or the window has it
    srtt_ns: int  # smoothed time from a packet to its result; waits for late workers count
    rto_ns: int  # the retransmission timeout now
    receive_buffer_bytes: int  # as granted by the kernel, all queues; shared memory: the ring's
    gso: bool  # sends in trains (UDP_SEGMENT)
    gro: bool  # receives in trains (UDP_GRO)
    transport: str = "udp"  # or "shm": shared memory
    threads: int = 1  # that drive the transport
    queues: int = 1  # for what they receive: one each, or one for all
    passed_on: int = 0  # packets that another thread than that of their lane received
    sparse_sums: int = 0  # all_reduce_blocks
    sparse_blocks: int = 0  # of their arrays
    sparse_own_blocks: int = 0  # of those, not zero on this rank
    sparse_union_blocks: int = 0  # of those, not zero on some rank

    def after(self, former: SessionStats) -> SessionStats:
        """Return both sessions' counts together; what is no count is this one's."""
        counts = {
            name: getattr(former, name) + value
            for name, value in vars(self).items()
            if name not in _OF_NOW
        }
        return replace(self, **counts)

    @classmethod
    def of(cls, stats: TransportStats, sparse: BlockCounts = NO_BLOCKS) -> SessionStats:
        """Return the counts of a transport, and of the sparse sums over it."""
        worker, channel = stats.worker, stats.channel
        overhead_bytes = FRAME_OVERHEAD_BYTES + _AROUND_BYTES.get(stats.kind, 0)
        return cls(
            packets_sent=worker.packets_sent,
            unclaimed_packets=worker.unclaimed,
            packets_received=worker.packets_received,
            bytes_sent=worker.payload_bytes_sent + overhead_bytes * worker.packets_sent,
            bytes_received=worker.payload_bytes_received + overhead_bytes * worker.packets_received,
            retransmissions=worker.retransmissions,
            losses=worker.losses,
            spurious_resends=worker.spurious,
            probes=worker.probes,
            overtaken=worker.overtaken,
            timeouts=worker.timeouts,
            shared_packets=channel.shared_packets,
            duplicates=worker.duplicates,
            stale=worker.stale,
            corrupted_sums=worker.corrupted,
            refused_results=worker.malformed + worker.foreign + worker.mismatched,
            damaged_results=channel.damaged,
            icmp_errors=channel.refused + channel.unreachable,
            send_drops=channel.send_drops,
            ecn_marked=worker.ecn_marked,
            exponent_rounds=worker.exponent_rounds,
            guessed_chunks=worker.guessed_chunks,
            chunks_done=worker.chunks_done,
            bytes_done=worker.bytes_done,
            operations_done=worker.tensors_done,
            last_seq=worker.last_seq,
            in_flight=stats.in_flight,
            window=stats.window,
            in_flight_limit=stats.in_flight_limit,
            srtt_ns=stats.srtt_ns,
            rto_ns=stats.rto_ns,
            receive_buffer_bytes=stats.receive_buffer_bytes,
            gso=stats.gso,
            gro=stats.gro,
            transport=stats.kind,
            threads=stats.threads,
            queues=stats.queues,
            passed_on=stats.passed_on,
            sparse_sums=sparse.sums,
            sparse_blocks=sparse.blocks,
            sparse_own_blocks=sparse.own,
            sparse_union_blocks=sparse.union,
        )
