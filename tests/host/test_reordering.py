"""What a worker learns from having taken lateness for loss."""

from __future__ import annotations

from statistics import median

import numpy as np

from ina._native.congestion import Choice
from ina._native.host import WorkerCore
from ina.protocol.codec import Header
from ina.protocol.collective import Collective
from ina.protocol.spec import Flag
from ina.testing import numerics
from tests.host.by_hand import DATA, OUT, VALUES, W, answer, sent_at, worker
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.cores import MS, SECOND
from tests.worlds.virtual.star import Star, scattered

STEP_NS = MS // 10
LATE_LANES = range(8)
LOSSY_LANE = 5


def rounds(
    core: WorkerCore, start_ns: int, count: int, *, late_steps: int = 0, loses: bool = False
) -> list[int]:
    """Answer packets a step after they were sent; returns when any was sent again.

    Those of some lanes `late_steps` steps later than the others'; with `loses`, of one lane only
    those that are sent again.
    """
    due: dict[int, list[Header]] = {}
    resent = []
    for step in range(count):
        now_ns = start_ns + step * STEP_NS
        for header in due.pop(step, []):
            answer(core, header, now_ns)
        for header in sent_at(core, now_ns):
            is_copy = Flag.RESEND in header.flags
            if is_copy:
                resent.append(now_ns)
            lane = header.seq % W
            if loses and lane == LOSSY_LANE and not is_copy:
                continue
            due.setdefault(step + 1 + (lane in LATE_LANES) * late_steps, []).append(header)
    return resent


def learned() -> WorkerCore:
    """Return an idle core that has found results of some lanes 0.3 ms late."""
    core = worker(10 * W)
    assert rounds(core, 0, 60, late_steps=3)
    assert core.counters.duplicates > 0
    assert core.take_completions() == [1]
    return core


def test_lateness_that_was_no_loss_is_borne_from_then_on() -> None:
    core = learned()
    core.submit(2, DATA.ctypes.data, OUT.ctypes.data, Collective(0, 10 * W * VALUES), 10 * MS)
    assert rounds(core, 10 * MS, 60, late_steps=3) == []
    assert core.take_completions() == [2]


def test_it_is_forgotten() -> None:
    core = learned()
    now_ns = 0
    for tensor in range(2, 8):
        now_ns += SECOND + SECOND // 10
        core.submit(
            tensor, DATA.ctypes.data, OUT.ctypes.data, Collective(0, 4 * W * VALUES), now_ns
        )
        assert rounds(core, now_ns, 8) == []
        assert core.take_completions() == [tensor]
    now_ns += SECOND // 10
    core.submit(9, DATA.ctypes.data, OUT.ctypes.data, Collective(0, 10 * W * VALUES), now_ns)
    assert rounds(core, now_ns, 8, loses=True)[0] == now_ns + 2 * STEP_NS


def test_real_losses_teach_nothing() -> None:
    core = worker(10 * W)
    resent = rounds(core, 0, 60, loses=True)
    # Each packet of the lane is overtaken after two steps and answered after one more, as long as
    # the other lanes have something to send.
    assert resent[:3] == [2 * STEP_NS, 5 * STEP_NS, 8 * STEP_NS]
    assert core.counters.duplicates == 0


def test_what_others_lose_teaches_nothing() -> None:
    """They send it again, as all do: then most of the copies that are not theirs are in vain."""
    fixed = Choice("fixed")  # what the window learns from losses is another matter
    star = Star(4, way=scattered(loss=0.01), slots=256, seed=5, window=fixed)
    times_ns = []
    for seed in range(6):
        before_ns = star.now_ns
        star.all_reduce(random_parts(INT32, 4, 64 * 2000, seed))
        times_ns.append(star.now_ns - before_ns)
    # 16 rounds of at most 0.12 ms. With as much patience as others' losses take: 4 to 10 ms.
    assert median(times_ns) < 3 * MS


def test_a_link_that_reorders_causes_fewer_copies_with_time() -> None:
    """Over several links: now and then one has a bad moment when it has long been learnt."""
    copies = np.zeros(12, int)  # of each turn
    for seed in range(5):
        star = Star(2, way=scattered(most_ns=400_000), slots=64, seed=seed)
        for turn in range(len(copies)):
            parts = random_parts(INT32, 2, 64 * 400, turn)
            want = numerics.all_reduce(parts, "sum", 64)
            before = sum(worker.counters.overtaken for worker in star.workers)
            assert all(numerics.same_bits(got, want) for got in star.all_reduce(parts))
            copies[turn] += sum(worker.counters.overtaken for worker in star.workers) - before
    assert copies[6:].sum() < copies[:6].sum() / 2, copies
