"""A transport that changes to another mapping while it works: sums are those of a run without."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import numpy as np
import pytest

from ina.host import OperationTimeoutError
from tests.host.sums import recover
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.virtual.remapped import NEVER_NS, Mapped, Tensors, sessions_of

VALUES = 64
GROUP = "239.192.78.1"


@pytest.mark.parametrize(
    ("before", "after", "threads", "loss"),
    [
        pytest.param(
            *(*sizes, threads, loss),
            marks=[pytest.mark.long] if (number + len(threads) // 2 + (loss > 0)) % 2 else [],
        )
        for number, sizes in enumerate([(16, 64), (64, 16), (32, 32), (2, 64), (64, 2)])
        for threads in ([1], [4, 1, 2])
        for loss in (0.0, 0.05)
    ],
)
def test_it_grows_shrinks_and_moves_under_way(
    before: int, after: int, threads: list[int], loss: float
) -> None:
    rng = random.Random(before * after)
    with (
        UdpModel(slots=256, values=VALUES, loss=loss, seed=after) as switch,
        closing(sessions_of(switch, 3, before, threads)) as sessions,
    ):
        tensors, mapped = Tensors(sessions, VALUES, before + after), Mapped(switch, sessions)
        for turn in range(3):
            tensors.submit_all(rng.randint(1, 6))
            for _ in range(rng.randint(0, 6)):  # these ranks are ahead of rank 0
                tensors.submit(rng.choice([1, 2]))
            order = rng.sample(range(3), 3)
            first = mapped.change(after if turn % 2 == 0 else before, order)
            assert first == tensors.submitted(0) + 1
            behind = max(map(tensors.submitted, range(3)))
            for rank in range(3):
                for _ in range(behind - tensors.submitted(rank) + 2):
                    tensors.submit(rank)
            mapped.end()
        tensors.check()
        for session in sessions:
            assert session._transport.mappings() == [(mapped.epoch, mapped.slots // 2)]
            stats = session.stats()
            assert stats.window == mapped.slots // 2
            assert stats.operations_done == tensors.submitted(0)
            assert stats.corrupted_sums == 0


def test_in_place_nothing_is_sent_before_all_have_the_old_results() -> None:
    """The new slots are the old ones: a late packet of the new mapping would take them over."""
    with (
        UdpModel(slots=32, values=VALUES, loss=0.02, seed=1) as switch,
        closing(sessions_of(switch, 2, 32, [1, 2])) as sessions,
    ):
        tensors, mapped = Tensors(sessions, VALUES, 5), Mapped(switch, sessions)
        for slots in (8, 32, 32):
            tensors.submit_all(4)
            mapped.begin(slots, first_slot=0)
            first = sessions[0]._transport.reserve(0)
            for session in sessions:
                session._transport.cut_over(first, False)
            tensors.submit_all(4)
            for session in sessions:
                assert session._transport.wait_cut(NEVER_NS)
                lanes = session._transport.lanes()
                assert (lanes.in_flight, lanes.epoch) == (0, mapped.epoch - 1)
            mapped.end()
            tensors.check()


def test_a_change_that_is_called_off_leaves_all_to_the_old_mapping() -> None:
    with (
        UdpModel(slots=64, values=VALUES) as switch,
        closing(sessions_of(switch, 2, 16, [1, 2])) as sessions,
    ):
        tensors, mapped = Tensors(sessions, VALUES, 6), Mapped(switch, sessions)
        tensors.submit_all(3)
        mapped.begin(32)
        first = sessions[0]._transport.reserve(0)
        assert sessions[0]._transport.reserve(NEVER_NS) == first  # whenever it is asked
        tensors.submit_all(3)
        tensors.submit(1)
        assert [s.stats().operations_done < 6 for s in sessions] == [True, True]
        for session in sessions:
            session._transport.cancel_remap()
        tensors.submit(0)
        tensors.check()
        assert all(session._transport.mappings() == [(1, 8)] for session in sessions)
        mapped.change(32, [1, 0])  # and another one may follow
        tensors.submit_all(2)
        tensors.check()
        mapped.end()


def test_ranks_frozen_in_the_middle_end_with_the_undisturbed_sums() -> None:
    """Each may have heard of none of it, or be through with the old mapping."""
    transfers = set()
    for seed in range(24):
        rng = random.Random(seed)
        with (
            UdpModel(slots=64, values=VALUES, loss=0.1, seed=seed) as switch,
            closing(sessions_of(switch, 2, 16, [1, 2], recoverable=True)) as sessions,
        ):
            tensors, mapped = Tensors(sessions, VALUES, seed), Mapped(switch, sessions)
            tensors.submit_all(3)
            mapped.begin(rng.choice([8, 16, 32]))
            late, through = seed % 3 == 1, seed % 3 == 2
            first = sessions[0]._transport.reserve(0)
            for session in sessions[:1] if late else sessions:
                session._transport.cut_over(first, bool(seed % 4))
            tensors.submit_all(4)
            if through:
                for session in sessions:
                    assert session._transport.wait_cut(NEVER_NS)
                sessions[rng.randrange(2)]._transport.end_remap()
            time.sleep(rng.random() * 0.01)
            plan = recover([session.freeze() for session in sessions])
            transfers |= {transfer.epoch for transfer in plan.transfers}
            tensors.check()
    assert transfers == {1, 2}


def test_a_new_mapping_that_nobody_sums_stalls_and_says_so() -> None:
    with (
        UdpModel(slots=64, values=VALUES) as switch,
        closing(sessions_of(switch, 1, 16, [1], op_timeout_s=0.3)) as (session,),
    ):
        mapped = Mapped(switch, [session])
        mapped.change(32, [0])
        with switch._lock:
            switch.model.jobs.clear()
        with pytest.raises(OperationTimeoutError, match=r"no result for 0\.3 s"):
            session.all_reduce(np.ones(9, np.int32))


@pytest.mark.parametrize("threads", [1, 2])
def test_what_no_thread_has_taken_yet_is_not_left_to_the_old_mapping(threads: int) -> None:
    """Nobody ever sums it there: it would stay until the job is called stalled, and its memory,
    which is the caller's again once the new mapping has summed it, would be sent from there."""
    with (
        UdpModel(slots=256, values=VALUES) as switch,
        closing(sessions_of(switch, 2, 32, [threads])) as sessions,
    ):
        mapped, ones = Mapped(switch, sessions), np.ones(VALUES * 20, np.int32)
        ahead = sessions[1]._transport
        for _ in range(20):  # the thread may be as fast as that, now and then
            mapped.begin(32)
            first = sessions[0]._transport.reserve(0)
            handles = [sessions[1].all_reduce(ones, async_op=True)]
            ahead.cut_over(first, True)
            sessions[0]._transport.cut_over(first, True)
            handles.append(sessions[0].all_reduce(ones, async_op=True))
            assert all((handle.wait(30) == 2).all() for handle in handles)
            assert ahead.lanes().in_flight == 0
            mapped.end()


def test_steps_out_of_turn_are_refused() -> None:
    with (
        UdpModel(slots=64, values=VALUES) as switch,
        closing(sessions_of(switch, 1, 16, [1])) as (session,),
    ):
        mapped, transport = Mapped(switch, [session]), session._transport
        for step in (transport.cancel_remap, transport.end_remap, lambda: transport.reserve(0)):
            with pytest.raises(RuntimeError, match="no change of mapping has begun"):
                step()
        mapped.begin(32)
        with pytest.raises(RuntimeError, match="a change of mapping is under way"):
            mapped.tell(session)
        with pytest.raises(RuntimeError, match="do not go by the new mapping yet"):
            transport.end_remap()
        session.all_reduce(np.ones(9, np.int32))
        with pytest.raises(ValueError, match="operation 1 has results by the old mapping"):
            transport.cut_over(1, True)
        assert transport.reserve(0) == 2
        with pytest.raises(RuntimeError, match="mapping is 2, not 3"):
            transport.cut_over(3, True)
        transport.cut_over(2, True)
        transport.cut_over(2, True)  # said twice
        with pytest.raises(RuntimeError, match="go by the new mapping already"):
            transport.cancel_remap()
        mapped.end()
        ticket = session.ticket
        with pytest.raises(ValueError, match="has the epoch of the old one"):
            transport.begin_remap(
                replace(ticket, epoch=2).worker_config(
                    stall_timeout_ns=10**9, rto=session._link.rto, keep_results=False
                ),
                0,
                ticket.congestion.choice(),
            )
        session.close()
        with pytest.raises(RuntimeError, match="the transport has ended"):
            transport.reserve(0)


@pytest.mark.parametrize("threads", [1, 2])
def test_results_for_all_workers_at_once_come_by_both_mappings(threads: int) -> None:
    """The group's sockets take the lanes of the new window, too."""
    with (
        UdpModel(slots=256, values=VALUES, group=GROUP) as switch,
        closing(sessions_of(switch, 2, 32, [threads])) as sessions,
    ):
        tensors, mapped = Tensors(sessions, VALUES, 9), Mapped(switch, sessions)
        for slots in (128, 8):
            before = [session.stats().shared_packets for session in sessions]
            tensors.submit_all(4)
            mapped.change(slots, [1, 0])
            tensors.submit_all(4)
            mapped.end()
            tensors.submit_all(4)
            tensors.check()
            after = [session.stats().shared_packets for session in sessions]
            assert all(b > a for a, b in zip(before, after, strict=True))


def test_an_empty_operation_counts_in_the_new_mapping_whenever_it_was_submitted() -> None:
    """Ranks submit the same by it; one of them had done this before it heard of the change."""
    with (
        UdpModel(slots=64, values=VALUES) as switch,
        closing(sessions_of(switch, 2, 16, [1])) as sessions,
    ):
        empty, ones = np.zeros(0, np.int32), np.ones(300, np.int32)
        mapped = Mapped(switch, sessions)
        assert sessions[1].all_reduce(empty).size == 0
        assert mapped.change(32, [0, 1]) == 1
        sessions[0].all_reduce(empty)
        handles = [session.all_reduce(ones, async_op=True) for session in sessions]
        assert all((handle.wait(30) == 2).all() for handle in handles)
        mapped.end()
