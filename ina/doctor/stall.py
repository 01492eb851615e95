"""Why a job stands still: what its workers last reported, in the words of somebody who has to act.
Pure: from a ShowJob reply to lines."""

from __future__ import annotations

from ina.doctor.verdict import Step
from ina.protocol.addresses import place_of
from ina.rpc import controller_pb2 as pb2

QUIET_S = 2.0
"""A worker that has waited less is no news."""
LOSS_SHARE = 0.02
"""Of the packets sent: more losses are worth a look (the alert InaPacketLoss says the same)."""
ENOUGH_PACKETS = 1000
"""Fewer say nothing about shares."""
_SILENT_ADVICE = "it is dead, stopped, or cut off from the controller"


def explain(reply: pb2.ShowJobReply, now_unix_s: float) -> list[Step]:
    """What is known about a job, worst first; each step that is not ok says what to do."""
    job = reply.job
    if job.state != "running":
        return [_not_running(reply)]
    members = {member.rank: member for member in reply.members}
    steps = _order_of_operations(members)
    if job.HasField("stall"):
        steps += _stalled(reply, members, now_unix_s)
    else:
        steps.append(Step("progress", True, _progress(reply)))
    for rank in sorted(members):
        steps += _worker(members[rank], rank in job.stall.missing, now_unix_s)
    steps += _switch(reply)
    return sorted(steps, key=lambda step: step.ok)


def _not_running(reply: pb2.ShowJobReply) -> Step:
    job = reply.job
    absent = [rank for rank in range(job.world_size) if rank not in job.joined]
    if job.state == "joining":
        return Step(
            "start",
            False,
            f"it waits for {_ranks(absent)} of {job.world_size} to join",
            "are those processes running, do they name the same controller, job and world size?",
        )
    last = reply.history[-1].reason if reply.history else ""
    found = f"it is {job.state}" + (f": {last}" if last else "")
    return Step("state", False, found, "ina controller status: does the switch answer it?")


def _stalled(
    reply: pb2.ShowJobReply, members: dict[int, pb2.Member], now_unix_s: float
) -> list[Step]:
    stall = reply.job.stall
    since_s = max(0.0, now_unix_s - stall.since_unix_s)
    where = f"sequence number {stall.seq}, slot {stall.slot}, for {since_s:.0f} s"
    if not stall.missing:
        return [
            Step(
                "packets",
                False,
                f"every rank has sent {where}, and no result comes",
                "packets are lost one way: run ina doctor --controller on the waiting hosts"
                f" ({_ranks(list(stall.waiting))})",
            )
        ]
    verb = "waits" if len(stall.waiting) == 1 else "wait"
    found = f"{_ranks(list(stall.waiting))} {verb} for {_ranks(list(stall.missing))}: {where}"
    steps = [Step("who is missing", False, found)]
    most = max((m.progress.operations_submitted for m in members.values()), default=0)
    for rank in stall.missing:
        steps.append(_missing(rank, members.get(rank), most, now_unix_s))
    return steps


def _missing(rank: int, member: pb2.Member | None, most_submitted: int, now_unix_s: float) -> Step:
    name = f"rank {rank}"
    if member is None:
        return Step(name, False, "it has left", "the others should end too: look at its log")
    progress = member.progress
    place = place_of(member.host, member.udp_port, member.process)
    if silence := _silence(member, now_unix_s):  # what it said before is old
        return Step(name, False, f"{place}: {silence}", _SILENT_ADVICE)
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
    if progress.switch_refuses:
        return Step(
            name,
            False,
            f"{place}: the switch's address refuses its packets",
            "is the switch running?",
        )
    found = f"{place} is in operation {progress.operations_done + 1} and has not sent that packet"
    return Step(name, False, found, "its packets in flight wait for others: see those first")


def _order_of_operations(members: dict[int, pb2.Member]) -> list[Step]:
    """Ranks far apart in the number of operations do not run the same program."""
    counts = {rank: m.progress.operations_submitted for rank, m in members.items()}
    if not counts or max(counts.values()) - min(counts.values()) <= 1:
        return []
    said = ", ".join(f"rank {rank}: {count}" for rank, count in sorted(counts.items()))
    return [Step("operations", True, f"submitted so far: {said}")]


def _silence(member: pb2.Member, now_unix_s: float) -> str:
    """Empty: it has been heard of late."""
    age_s = now_unix_s - member.progress_unix_s
    if not member.progress_unix_s or age_s <= max(QUIET_S, member.lease_left_s):
        return ""
    return f"no heartbeat for {age_s:.0f} s, its lease ends in {member.lease_left_s:.0f} s"


def _worker(member: pb2.Member, is_missing: bool, now_unix_s: float) -> list[Step]:
    name, progress = f"rank {member.rank}", member.progress
    steps = []
    silence = _silence(member, now_unix_s)
    if silence and not is_missing:
        steps.append(Step(name, False, silence, _SILENT_ADVICE))
    sent = progress.packets_sent
    if sent < ENOUGH_PACKETS:
        return steps
    if progress.losses > LOSS_SHARE * sent:
        found = f"{progress.losses / sent:.0%} of its {sent} packets, or their answers, were lost"
        steps.append(Step(name, False, found, "ina doctor --controller on that host: losses, MTU"))
    elif progress.probes > LOSS_SHARE * sent:
        found = (
            f"{progress.probes / sent:.0%} of its {sent} packets went out while it waited for a"
            f" slower rank, {progress.losses} for a loss"
        )
        steps.append(Step(name, True, found))
    return steps


def _switch(reply: pb2.ShowJobReply) -> list[Step]:
    counts: dict[str, int] = {}
    for counter in reply.counters:
        counts[counter.name] = counts.get(counter.name, 0) + counter.packets
    unaddressed = counts.get("job_unaddressed", 0)
    if not unaddressed:
        return []
    found = f"{unaddressed} results had no receiver"
    return [Step("switch", False, found, "somebody removed entries: ina switch show")]


def _progress(reply: pb2.ShowJobReply) -> str:
    done = [member.progress.chunks_done for member in reply.members]
    return f"it moves: {min(done)} to {max(done)} chunks done" if done else "it runs"


def _ranks(ranks: list[int]) -> str:
    return f"rank{'s' if len(ranks) != 1 else ''} {', '.join(map(str, ranks)) or 'none'}"
