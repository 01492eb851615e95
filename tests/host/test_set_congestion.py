"""Windows that are changed from outside while packets are in flight: sums stay what they are."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from ina.congestion import Choice, Congestion
from ina.extension.host import WorkerCore
from ina.host import Session
from ina.protocol.collective import Collective
from ina.protocol.spec import ValueType
from tests.worlds.fakes.udp_model import UdpModel, closing
from tests.worlds.virtual.changes import Change
from tests.worlds.virtual.cores import MS, SECOND, worker_config
from tests.worlds.virtual.disturbed import VALUES, Job
from tests.worlds.virtual.remapped import NEVER_NS, Mapped, Tensors, sessions_of
from tests.worlds.virtual.star import Star, even, late, scattered

CHOICES = (
    Congestion("ina"),
    Congestion("adaptive"),
    Congestion("adaptive", {"shrink": 0.2, "smallest": 1, "products": 0}),
    Congestion("fixed"),
    Congestion("fixed", {"packets": 1}),
    Congestion("fixed", {"packets": 3}),
)


def any_word(rng: random.Random, window: int) -> tuple[Choice | None, int]:
    choice = rng.choice([None, *(it.choice() for it in CHOICES)])
    return choice, rng.choice([0, 1, 2, 3, window - 1, window, 2 * window])


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    workers=st.integers(1, 4),
    sizes=st.lists(st.sampled_from([2, 8, 32]), min_size=1, max_size=3),
    lengths=st.lists(st.integers(0, 720), min_size=1, max_size=8),
    loss=st.floats(0, 0.2),
    often=st.sampled_from([2, 10, 50]),
)
def test_sums_are_those_of_a_run_without(
    seed: int, workers: int, sizes: list[int], lengths: list[int], loss: float, often: int
) -> None:
    """At any moment, of any rank, also while the job changes to another mapping."""
    rng = random.Random(seed)
    shares = [min(rng.choice([1, 1, 2, 4]), sizes[0] // 2) for _ in range(workers)]
    way, back = scattered(loss, loss / 2, most_ns=300_000), late(loss / 2, loss, loss / 2)
    star = Star(
        workers, slots=sizes[0], values=VALUES, way=way, back=back, seed=seed, shares=shares,
        keep_results=True,
    )  # fmt: skip
    job = Job(star, lengths, seed)
    change, number, words = None, 1, 0
    for step in range(20_000):
        for rank in range(workers):
            if job.submitted[rank] < len(lengths) and rng.randrange(5) == 0:
                job.submit(rank)
        if change is None and number < len(sizes) and step > 20 * number:
            change = Change(star, number, sizes[number], rng)
            number += 1
        if change is not None:
            change.go_on()
            change = None if change.is_over else change
        if rng.randrange(often) == 0:
            words += 1
            star.workers[rng.randrange(workers)].set_congestion(*any_word(rng, sizes[0] // 2))
        star.step()
        job.reuse_what_is_done()  # where one ends twice, it says so
        if all(len(results) == len(lengths) for results in job.results):
            break
    else:
        pytest.fail("it does not end")
    assert star.failed == [None] * workers
    event("words while it ran", words > 0)
    job.check()
    counters = [worker.counters for worker in star.workers]
    assert {one.chunks_done for one in counters} == {counters[0].chunks_done}


def test_a_cap_holds_from_the_next_packet_on_and_its_end_does_too() -> None:
    star = Star(2, slots=256, values=64, way=even(1 * MS), window=Congestion("fixed").choice())
    parts = [np.ones(64 * 128 * 50, np.int32) for _ in range(2)]
    outs = [np.empty_like(part) for part in parts]
    for rank, part in enumerate(parts):
        star.submit(rank, 1, part, outs[rank])
    one, other = star.workers
    star.run_until(5 * MS)
    assert (one.in_flight, one.in_flight_limit) == (128, 128)
    one.set_congestion(None, 10)
    assert one.in_flight_limit == 10
    assert one.in_flight == 128  # those are on their way, and stay so
    star.run_until(star.now_ns + 2 * MS)  # a round trip: all of them have been answered
    assert one.in_flight == 10
    # The other has sent what this one may not yet.
    assert other.in_flight == 128
    one.set_congestion(None, 0)
    assert one.in_flight == 128, "at once, though nothing has come"
    other.set_congestion(Congestion("fixed", {"packets": 30}).choice(), 40)
    assert other.in_flight_limit == 30
    other.set_congestion(None, 20)
    assert other.in_flight_limit == 20
    star.run(1)
    assert all((out == 2).all() for out in outs)


@pytest.mark.parametrize(
    ("most", "shares", "limit"), [(1, 4, 4), (4, 4, 4), (9, 4, 9), (32, 1, 32), (0, 4, 64)]
)
def test_each_share_has_its_part_of_a_cap_and_one_at_least(
    most: int, shares: int, limit: int
) -> None:
    star = Star(1, slots=128, values=64, shares=[shares], window=Congestion("fixed").choice())
    star.workers[0].set_congestion(None, most)
    assert star.workers[0].in_flight_limit == limit


def test_another_window_does_not_wait_for_the_formers_pace() -> None:
    slow = Congestion("tests.worlds.virtual.windows:Kept", {"gap_ns": 3600 * SECOND})
    core = WorkerCore(worker_config(0, 2, slots=16, values=64), congestion=slow.choice())
    part = np.ones(64 * 8, np.int32)
    what = Collective(ValueType.INT32, part.size)
    core.submit(1, part.ctypes.data, part.ctypes.data, what, 0)
    assert len(core.poll_transmit(MS)) == 1
    assert not core.poll_transmit(2 * MS)
    core.set_congestion(Congestion("fixed").choice(), 0)
    assert core.next_deadline_ns(2 * MS) == 2 * MS
    assert len(core.poll_transmit(2 * MS)) == 7


def test_an_unknown_algorithm_or_option_changes_nothing() -> None:
    star = Star(1, slots=128, values=64)
    star.workers[0].set_congestion(Congestion("fixed").choice(), 5)
    with pytest.raises(ValueError, match="vegas"):
        star.workers[0].set_congestion(Choice("vegas", []), 9)
    assert star.workers[0].in_flight_limit == 5


def test_who_is_last_counts_sums_that_its_packet_completed() -> None:
    """Rank 1's way is longer: each sum waits for it, and it for none."""
    star = Star(3, slots=32, values=64, way=even(20_000))
    star.up[1].link = even(400_000).link()
    parts = [np.ones(64 * 16 * 10, np.int32) for _ in range(3)]
    star.all_reduce(parts)
    counts = [(it.counters.last, it.counters.chunks_done) for it in star.workers]
    assert counts == [(0, 160), (160, 160), (0, 160)]
    assert star.workers[1].stats().shortest_ns == 420_000
    assert star.workers[1].stats().mean_ns == 420_000
    lossy = Star(2, slots=32, values=64, way=even(20_000, loss=0.3), seed=3)
    lossy.all_reduce([np.ones(64 * 16 * 10, np.int32) for _ in range(2)])
    last = [it.counters.last for it in lossy.workers]
    assert 0 < sum(last) < 160  # of those that were sent again it is not known


@pytest.mark.parametrize("loss", [0.0, 0.03])
def test_real_threads_take_changes_while_they_work_and_while_mappings_change(loss: float) -> None:
    rng = random.Random(5)
    with (
        UdpModel(slots=256, values=64, loss=loss, seed=7) as switch,
        closing(sessions_of(switch, 3, 32, [4, 1, 2])) as sessions,
    ):
        tensors, mapped = Tensors(sessions, 64, 11), Mapped(switch, sessions)
        for slots in (64, 32):
            tensors.submit_all(3)
            change_all(sessions, rng)
            mapped.change(slots, [2, 0, 1])
            change_all(sessions, rng)
            tensors.submit_all(3)
            change_all(sessions, rng)
            mapped.end()
        for session in sessions:
            session._transport.set_congestion(Congestion("fixed").choice(), 6)
        tensors.submit_all(2)
        tensors.check()
        parts = {session.stats().threads: session.stats().in_flight_limit for session in sessions}
        assert parts == {4: 6, 1: 6, 2: 6}
        tensors.submit_all(1)
        mapped.change(64, [0, 1, 2])
        tensors.submit_all(1)
        mapped.end()
        tensors.check()
        for session in sessions:  # the cap holds in the new mapping, too
            assert session.stats().in_flight_limit == 6
            session._transport.set_congestion(None, 0)
            assert session.stats().in_flight_limit == 32


def change_all(sessions: Sequence[Session], rng: random.Random) -> None:
    for session in rng.sample(list(sessions), len(sessions)):
        session._transport.set_congestion(*any_word(rng, 16))


def test_a_lifted_cap_wakes_threads_that_nothing_else_would() -> None:
    """One worker alone may send one packet, whose result is lost with all that follows it; the
    others' results wait for what it may not send. No timer of its own would send these."""
    config = worker_config(0, 1, 64, 64)
    core = WorkerCore(config, 0, Congestion("fixed").choice())
    core.set_congestion(None, 1)
    part, out = np.ones(64 * 8, np.int32), np.empty(64 * 8, np.int32)
    core.submit(1, part.ctypes.data, out.ctypes.data, Collective(0, part.size), 0)
    assert len(core.poll_transmit(0)) == 1
    due_ns = core.next_deadline_ns(0)
    assert due_ns is not None
    assert due_ns > 0
    core.set_congestion(None, 0)
    assert core.next_deadline_ns(0) == 0, "whoever is woken finds that there is more to send"
    assert len(core.poll_transmit(0)) == 7


def test_a_frozen_or_closed_transport_does_not_mind() -> None:
    with (
        UdpModel(slots=64, values=64) as switch,
        closing(sessions_of(switch, 1, 32, [2])) as sessions,
    ):
        tensors = Tensors(sessions, 64, 1)
        tensors.submit_all(2)
        tensors.check(NEVER_NS / 1e9)
        transport = sessions[0]._transport
        sessions[0].close()
        transport.set_congestion(Congestion("fixed").choice(), 1)
