"""A2TP's two windows by their formulas (EuroSys 2023, section 4), driven by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

import pytest

from ina._native.host import LossRecovery, RtoLimits
from ina.congestion import Congestion

LANES = 256
BYTES = 330  # of a packet, as LossRecovery by itself has it
THETA = 0.1
BASE_NS = 20_000


@dataclass
class Paper:
    """The formulas, for rounds of which all results are marked, or wanted, or none."""

    links: float
    slots: float
    alpha: float = 0.0
    beta: float = 0.0
    gamma: float = 1.0

    def end_round(self, marked: int, wanted: int, degree: float | None = 1.0) -> None:
        """``degree``: that is measured in the next round."""
        self.alpha += (min(marked / self.links, 1.0) - self.alpha) / 8
        self.beta += (min(wanted / self.slots, 1.0) - self.beta) / 8
        if wanted and self.beta > THETA:
            self.slots *= 1 - (self.beta - THETA) ** self.gamma / (2 - THETA)
        else:
            self.slots += 1
        self.links = self.links * (1 - self.alpha / 2) if marked else self.links + 1
        self.links = min(max(self.links, 1.0), LANES)
        self.slots = min(max(self.slots, 1.0), self.links)
        if degree is not None:
            self.gamma += (degree - self.gamma) / 64


@dataclass
class Core:
    """Answers packets at once, a round of so many at a time."""

    packets: int = 100
    options: dict[str, float] = field(default_factory=dict)
    now_ns: int = 0
    order: int = 0

    def __post_init__(self) -> None:
        options = {"first_bytes": self.packets * BYTES, "base_us": BASE_NS / 1e3, **self.options}
        choice = Congestion("a2tp", options).choice()
        self.recovery = LossRecovery(LANES, RtoLimits(), choice)

    @property
    def window(self) -> int:
        return self.recovery.window_packets

    @property
    def claiming(self) -> int:
        return sum(self.recovery.claims(lane) for lane in range(LANES))

    def answer(self, count: int, marked: int = 0, wanted: int = 0, gap_ns: int = 0) -> None:
        """``marked``, ``wanted``: so many of them."""
        for at in range(count):
            lane = self.order % LANES
            self.recovery.sent(lane, self.order, 0, self.now_ns)
            self.now_ns += gap_ns
            self.recovery.answered(lane, self.now_ns, marked=at < marked, wanted=at < wanted)
            self.order += 1

    def round(self, marked: int = 0, wanted: int = 0) -> None:
        """A window of results, all of them a while after the last round."""
        self.now_ns += 10 * BASE_NS
        self.answer(self.window, marked, wanted)


def test_it_grows_by_a_packet_a_round() -> None:
    core = Core(packets=100)
    for expected in range(101, 110):
        core.round()
        assert core.window == expected
    assert core.claiming == LANES


def test_marks_shrink_the_window_by_half_their_share_and_it_alone_takes_slots_along() -> None:
    core, paper = Core(), Paper(100, 100)
    for marked in (50, 100, 0, 3, 1000):
        marked = min(marked, core.window)
        paper.end_round(marked, 0, None)
        core.round(marked=marked)
        assert core.window == int(paper.links)
    assert core.claiming == LANES


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_wanted_slots_shrink_the_second_window(share: float) -> None:
    """Lanes are answered in turn, so that each has heard of the newest windows after a turn."""
    core, paper = Core(), Paper(100, 100)
    for _ in range(30):
        wanted = int(share * core.window)
        paper.end_round(0, wanted, None)
        core.round(wanted=wanted)
    assert core.window == int(paper.links) == 130
    while core.order % LANES:
        core.answer(1)
        if core.window != int(paper.links):  # a round has ended
            paper.end_round(0, 0, None)
    assert core.claiming == pytest.approx(LANES * paper.slots / paper.links, abs=4)
    assert (core.claiming == LANES) == (share == 0.05)


def test_below_the_threshold_it_takes_no_notice() -> None:
    core = Core(options={"threshold": 0.5})
    for _ in range(30):
        core.round(wanted=int(0.4 * core.window))
    assert core.claiming == LANES


def measured(degree: float) -> tuple[Core, Paper]:
    """After rounds of which this part comes within a base round trip after the round before."""
    core, paper = Core(), Paper(100, 100)
    core.round()
    paper.end_round(0, 0, None)
    for _ in range(60):
        soon, window = int(degree * core.window), core.window
        paper.gamma += (min(soon / (paper.links - 1), 1.0) - paper.gamma) / 64
        core.now_ns += BASE_NS // 2
        core.answer(soon)
        core.now_ns += BASE_NS
        core.answer(window - soon)
        paper.end_round(0, 0, None)
        assert core.window == int(paper.links)
    return core, paper


@pytest.mark.parametrize("degree", [0.02, 0.5, 0.9])
def test_who_straggles_gives_up_more(degree: float) -> None:
    core, paper = measured(degree)
    assert paper.gamma == pytest.approx(degree + (1 - degree) * (63 / 64) ** 60, abs=0.02)
    for _ in range(6):
        paper.end_round(0, core.window // 2, None)
        core.round(wanted=core.window // 2)
    for _ in range(LANES // core.window + 1):
        core.answer(LANES - core.order % LANES)
    left = paper.slots / paper.links
    assert core.claiming / LANES == pytest.approx(left, abs=0.06)


def test_the_more_it_straggles_the_fewer_slots_it_keeps() -> None:
    kept = []
    for degree in (0.9, 0.02):
        core, _ = measured(degree)
        for _ in range(6):
            core.round(wanted=core.window // 2)
        kept.append(core.claiming)
    assert kept[1] < 0.9 * kept[0]


def test_a_pause_is_no_straggler() -> None:
    """Nothing comes for longer than five base round trips after a round: that measures nothing."""
    with_pauses, without = Core(), Core(options={"degree_weight": 0.001})
    for core in (with_pauses, without):
        for _ in range(60):
            core.round()
        for _ in range(6):
            core.round(wanted=core.window // 2)
    assert with_pauses.claiming == without.claiming


def test_at_the_floor_one_lane_in_a_window_claims() -> None:
    core = Core(packets=64)
    for _ in range(100):
        core.round(wanted=core.window)
    assert core.window == 164
    assert 1 <= core.claiming <= 3
    assert core.recovery.claims(0)


def test_any_lanes_in_a_row_have_their_part_and_smaller_windows_fewer_of_the_same() -> None:
    core, kept = Core(packets=64, options={"increase_packets": 0.001}), []
    for _ in range(12):
        core.round(wanted=core.window)
        core.answer(LANES)  # each lane hears of it
        claims = [core.recovery.claims(lane) for lane in range(LANES)]
        kept.append({lane for lane, claiming in enumerate(claims) if claiming})
        part = sum(claims) / LANES
        for first in range(LANES - 32):
            assert sum(claims[first : first + 32]) == pytest.approx(32 * part, abs=3)
    assert all(later <= earlier for earlier, later in pairwise(kept))


def test_what_is_decided_of_a_lane_is_decided_when_its_result_comes() -> None:
    core = Core()
    core.round()
    for _ in range(12):
        core.now_ns += 10 * BASE_NS
        for _ in range(core.window):  # of lane 1 alone
            core.recovery.sent(1, core.order, 0, core.now_ns)
            core.recovery.answered(1, core.now_ns, wanted=True)
            core.order += 1
    assert not core.recovery.claims(1)
    assert core.recovery.claims(3)
    core.recovery.sent(3, core.order, 0, core.now_ns)
    core.recovery.answered(3, core.now_ns)
    assert not core.recovery.claims(3)


def test_a_loss_counts_as_a_mark_and_a_timeout_as_nothing() -> None:
    core = Core()
    core.recovery.sent(0, 0, 0, 0)
    for lane in range(1, 50):
        core.recovery.sent(lane, lane, 0, 0)
    core.recovery.due(10**9)  # a timer has run out
    before = core.window
    for lane in range(50):
        core.recovery.answered(lane, 10**9)
    core.answer(before - 50)
    assert core.window == before + 1
