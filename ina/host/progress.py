"""How a worker gets on, in the heartbeat's words."""

from __future__ import annotations

from collections.abc import Callable

from ina.extension.host import TransportEngine
from ina.host.wishes import Wishes
from ina.protocol.collective import Collective, Submitted
from ina.rpc import controller_pb2 as pb2
from ina.rpc.operations import message_of

# Packets in flight are sent again every 200 ms at least.
_REFUSAL_LASTS_S = 1.0


def operation_of(told: Submitted) -> pb2.Operation:
    """Return what the transport tells of an operation as a message."""
    number, what = told
    return message_of(number, Collective(*what))


class ProgressReporter:
    """Makes one report after the other of one transport."""

    def __init__(
        self,
        transport: TransportEngine,
        clock: Callable[[], float],
        wishes: Wishes | None = None,
    ) -> None:
        """`wishes`: said again with each report, for a controller that was started again."""
        self._transport = transport
        self._wishes = wishes or Wishes()
        self._clock = clock
        self._results = -1  # at the last report
        self._refused = 0
        self._refused_at = 0.0  # when it was seen to have grown
        self._submitted = 0  # at the last report that could say what is pending

    @property
    def has_begun_more(self) -> bool:
        """Whether an operation was submitted that no report has told of."""
        return self._transport.stats().worker.tensors_submitted > self._submitted

    def report(self, *, whole: bool = False) -> pb2.Progress:
        """Return the progress as of now; with the lanes unless results came since the last one.

        `whole`: with the lanes in any case, as last words.
        """
        lanes = self._transport.lanes()
        stats = self._transport.stats()
        worker = stats.worker
        progress = pb2.Progress(
            operations_submitted=worker.tensors_submitted,
            operations_done=worker.tensors_done,
            chunks_done=worker.chunks_done,
            retransmissions=worker.retransmissions,
            losses=worker.losses,
            spurious_resends=worker.spurious,
            probes=worker.probes,
            packets_sent=worker.packets_sent,
            corrupted_sums=worker.corrupted,
            in_flight=lanes.in_flight,
            silent_s=lanes.silent_ns / 1e9,
            oldest_seq=lanes.oldest_seq,
            oldest_waited_s=lanes.oldest_waited_ns / 1e9,
            mapping_epoch=lanes.epoch,
            round_trip_s=stats.srtt_ns / 1e9,
            deadline_unix_s=self._wishes.deadline_unix_s,
            steps=self._wishes.steps,
            busy_s=stats.rhythm.busy_ns / 1e9,
            tail_s=stats.rhythm.tail_ns / 1e9,
            step_operations=stats.rhythm.step_operations,
        )
        if lanes.oldest_operation is not None:
            progress.oldest.CopyFrom(operation_of(lanes.oldest_operation))
        progress.submitted.extend(map(operation_of, self._transport.submissions()))
        mismatch = self._transport.mismatch()
        if mismatch is not None:
            progress.differs_at = mismatch.operation
        results = worker.chunks_done + worker.exponent_rounds
        if whole or results == self._results:
            progress.lane_seqs.extend(lanes.seqs)
            progress.lanes_waiting = lanes.waiting
        now = self._clock()
        if stats.refused > self._refused:
            self._refused_at = now
        # The refusals of a switch that has come back since do not count.
        refuses = stats.refused_since_result > 0 and now - self._refused_at < _REFUSAL_LASTS_S
        progress.switch_refuses = refuses
        self._results, self._refused = results, stats.refused
        is_whole = (
            lanes.oldest_operation is not None or worker.tensors_done == worker.tensors_submitted
        )
        if is_whole:  # else what was begun a moment ago is not on its lanes yet
            self._submitted = worker.tensors_submitted
        return progress
