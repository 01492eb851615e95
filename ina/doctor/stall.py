"""Why a job stands still: the verdict, and what each worker's last report adds to it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ina.doctor.job_verdict import SILENT_ADVICE, Cause, Known, Verdict, judge, silence
from ina.doctor.verdict import Step
from ina.protocol.addresses import place_of
from ina.rpc import controller_pb2 as pb2

LOSS_FRACTION = 0.02
"""Of the packets sent: more losses are worth a look (the alert InaPacketLoss says the same)."""
ENOUGH_PACKETS = 1000
"""Fewer say nothing about shares."""
_WHO = (Cause.MISSING, Cause.SILENT, Cause.LEFT)
_NAMES = {
    Cause.NONE: "progress",
    Cause.ENDED: "state",
    Cause.SWITCH_AWAY: "switch",
    Cause.SWITCH_REFUSES: "switch",
    Cause.NOT_JOINED: "start",
    Cause.STARTING: "start",
    Cause.LEFT: "who is missing",
    Cause.SILENT: "who is missing",
    Cause.MISSING: "who is missing",
    Cause.NO_RESULT: "packets",
    Cause.LEAVING: "state",
}


def explain(known: Known, now_unix_s: float, counters: Sequence[pb2.Counter] = ()) -> list[Step]:
    """What is known about a job, worst first; each step that is not ok says what to do.

    ``counters``: of this job, as the switch has them.
    """
    job, verdict = known.job, judge(known, now_unix_s)
    steps = [Step(_NAMES[verdict.cause], verdict.ok, verdict.found, verdict.advice)]
    if verdict.cause is Cause.NONE:
        steps[0] = Step(_NAMES[Cause.NONE], True, _progress(verdict, known.members))
    if verdict.cause not in (Cause.NONE, Cause.NO_RESULT, *_WHO):
        return steps
    members = {member.rank: member for member in known.members}
    steps += _order_of_operations(members)
    if verdict.cause in _WHO:
        most = max((m.progress.operations_submitted for m in members.values()), default=0)
        for rank in job.stall.missing:
            member = members.get(rank)
            if member is None or not silence(member, now_unix_s):  # the verdict has said that
                steps.append(_missing(rank, member, most))
    for rank in sorted(members):
        steps += _worker(members[rank], rank in job.stall.missing, now_unix_s)
    steps += _switch(counters)
    return sorted(steps, key=lambda step: step.ok)


def _missing(rank: int, member: pb2.Member | None, most_submitted: int) -> Step:
    name = f"rank {rank}"
    if member is None:
        return Step(name, False, "it has left", "the others should end too: look at its log")
    progress = member.progress
    place = place_of(member.host, member.udp_port, member.process)
    behind = most_submitted - progress.operations_submitted
    if progress.operations_submitted == progress.operations_done:
        found = (
            f"{place} has finished its {progress.operations_done} operations and reduces nothing"
        )
        if behind > 0:
            found += f"; another rank has submitted {behind} more"
        advice = (
            "its program is busy elsewhere (data loading, evaluation, a checkpoint), waits for"
            " something else, or calls other collectives: look at its stack (py-spy dump)"
        )
        return Step(name, False, found, advice)
    found = f"{place} is in operation {progress.operations_done + 1} and has not sent that packet"
    return Step(name, False, found, "its packets in flight wait for others: see those first")


def _order_of_operations(members: dict[int, pb2.Member]) -> list[Step]:
    """Ranks far apart in the number of operations do not run the same program."""
    counts = {rank: m.progress.operations_submitted for rank, m in members.items()}
    if not counts or max(counts.values()) - min(counts.values()) <= 1:
        return []
    said = ", ".join(f"rank {rank}: {count}" for rank, count in sorted(counts.items()))
    return [Step("operations", True, f"submitted so far: {said}")]


def _worker(member: pb2.Member, is_missing: bool, now_unix_s: float) -> list[Step]:
    name, progress = f"rank {member.rank}", member.progress
    steps = []
    silent = silence(member, now_unix_s)
    if silent and not is_missing:
        steps.append(Step(name, False, silent, SILENT_ADVICE))
    sent = progress.packets_sent
    if sent < ENOUGH_PACKETS:
        return steps
    if progress.losses > LOSS_FRACTION * sent:
        found = f"{progress.losses / sent:.0%} of its {sent} packets, or their answers, were lost"
        steps.append(Step(name, False, found, "ina doctor --controller on that host: losses, MTU"))
    elif progress.probes > LOSS_FRACTION * sent:
        found = (
            f"{progress.probes / sent:.0%} of its {sent} packets went out while it waited for a"
            f" slower rank, {progress.losses} for a loss"
        )
        steps.append(Step(name, True, found))
    return steps


def _switch(counters: Sequence[pb2.Counter]) -> list[Step]:
    counts: dict[str, int] = {}
    for counter in counters:
        counts[counter.name] = counts.get(counter.name, 0) + counter.packets
    unaddressed = counts.get("job_unaddressed", 0)
    if not unaddressed:
        return []
    found = f"{unaddressed} results had no receiver"
    return [Step("switch", False, found, "somebody removed entries: ina switch show")]


def _progress(verdict: Verdict, members: Sequence[pb2.Member]) -> str:
    done = [member.progress.chunks_done for member in members]
    moves = f"; it moves: {min(done)} to {max(done)} chunks done" if done else ""
    return verdict.found + moves
