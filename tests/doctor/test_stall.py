"""What is said of a job that stands still, for what its workers reported."""

from __future__ import annotations

from ina.doctor.job_verdict import Known
from ina.doctor.stall import explain
from ina.doctor.verdict import Step
from ina.rpc import controller_pb2 as pb2

NOW = 1_000_000.0


def reply(state: str = "running", stall: pb2.Stall | None = None) -> pb2.ShowJobReply:
    job = pb2.Job(name="j", world_size=3, joined=[0, 1, 2], state=state, stall=stall)
    members = [
        pb2.Member(
            rank=rank,
            host=f"10.0.0.{rank}",
            udp_port=4000,
            lease_left_s=8,
            progress=pb2.Progress(operations_submitted=5, operations_done=4, chunks_done=100),
            progress_unix_s=NOW - 1,
        )
        for rank in range(3)
    ]
    return pb2.ShowJobReply(job=job, members=members)


def stall(missing: list[int]) -> pb2.Stall:
    waiting = [rank for rank in range(3) if rank not in missing]
    return pb2.Stall(seq=77, slot=513, missing=missing, waiting=waiting, since_unix_s=NOW - 30)


def explained(answer: pb2.ShowJobReply) -> list[Step]:
    return explain(Known(answer.job, answer.members, answer.history), NOW, answer.counters)


def text(answer: pb2.ShowJobReply) -> str:
    return "\n".join(f"{s.name}: {s.found} -> {s.advice}" for s in explained(answer))


def test_a_job_that_moves_is_well() -> None:
    steps = explained(reply())
    assert all(step.ok for step in steps)
    assert "100 to 100 chunks" in steps[0].found


def test_a_joining_job_names_who_has_not_joined() -> None:
    answer = reply("joining")
    answer.job.joined[:] = [0, 2]
    assert "waits for rank 1 of 3" in text(answer)


def test_the_missing_rank_is_named_with_slot_sequence_number_and_time() -> None:
    answer = reply(stall=stall([1]))
    answer.members[1].progress.operations_submitted = 4
    steps = explained(answer)
    assert not steps[0].ok
    said = text(answer)
    assert "rank 1 (10.0.0.1:4000) has not sent it: slot 513, sequence number 77, for 30 s" in said
    assert "(ranks 0, 2 waiting)" in said
    assert "10.0.0.1:4000 has finished its 4 operations" in said
    assert "another rank has submitted 1 more" in said


def test_a_rank_behind_shared_memory_is_named_by_its_process() -> None:
    answer = reply(stall=stall([1]))
    answer.members[1].host, answer.members[1].process = "127.64.0.2", "node7 pid 1234"
    assert "rank 1: node7 pid 1234 is in operation 5" in text(answer)
    answer.members[1].process = ""  # an older worker's
    assert "rank 1: 127.64.0.2:4000 is in operation 5" in text(answer)


def test_a_rank_that_waits_for_others_itself_is_told_apart_from_an_idle_one() -> None:
    assert "is in operation 5" in text(reply(stall=stall([1])))


def test_a_rank_that_is_gone_or_whose_switch_refuses() -> None:
    answer = reply(stall=stall([1]))
    answer.members[1].progress.switch_refuses = True
    assert "switch: nobody listens at the switch's address any more, say rank 1" in text(answer)
    del answer.members[1]
    answer.job.joined[:] = [0, 2]
    said = text(answer)
    assert "who is missing: rank 1 has left and not sent it" in said
    assert "rank 1: it has left" in said


def test_when_nobody_is_missing_packets_are() -> None:
    said = text(reply(stall=stall([])))
    assert "all have sent it, and no result comes: slot 513, sequence number 77" in said
    assert "ranks 0-2" in said


def test_a_silent_worker_and_a_lossy_one_are_reported() -> None:
    answer = reply(stall=stall([1]))
    answer.members[1].progress_unix_s = NOW - 9
    answer.members[1].lease_left_s = 1
    answer.members[2].progress.packets_sent = 4000
    answer.members[2].progress.retransmissions = 3000
    answer.members[2].progress.losses = 200
    answer.members[2].progress.probes = 2800
    said = text(answer)
    assert "no heartbeat for 9 s, its lease ends in 1 s" in said
    assert "5% of its 4000 packets, or their answers, were lost" in said


def test_probes_for_a_late_rank_are_no_trouble() -> None:
    answer = reply()
    answer.members[2].progress.packets_sent = 4000
    answer.members[2].progress.retransmissions = answer.members[2].progress.probes = 3000
    assert all(step.ok for step in explained(answer))
    assert "75% of its 4000 packets went out while it waited for a slower rank" in text(answer)
    assert "MTU" not in text(answer)


def test_of_a_missing_rank_that_is_silent_the_silence_is_told_and_not_what_it_said_before() -> None:
    answer = reply(stall=stall([1]))
    answer.members[1].progress_unix_s = NOW - 9
    answer.members[1].lease_left_s = 1
    answer.members[1].progress.operations_done = 5
    said = text(answer)
    assert said.count("no heartbeat for 9 s") == 1
    assert "has finished" not in said


def test_results_without_a_receiver_point_at_the_switch() -> None:
    answer = reply()
    answer.counters.add(name="job_unaddressed", packets=3)
    assert "3 results had no receiver" in text(answer)
