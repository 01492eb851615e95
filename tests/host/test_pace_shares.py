"""Who goes when a pace lets few packets go: new ones and those sent again, and each lane of them.

Where round trips are longer than timeouts, or all has been lost, there is always something to send
again. A sum that waits for a packet that this worker has not sent yet waits for ever, if that gets
no turn; so does one that waits for a lane of which nothing is sent again.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ina._native.host import LossRecovery, RtoLimits
from ina.congestion import Congestion
from tests.worlds.virtual import windows
from tests.worlds.virtual.cores import MS

LANES = 64
KEPT = f"{windows.__name__}:Kept"
SECONDS = 1_000 * MS


@dataclass
class Sender:
    """A worker with more to send than its window holds; each packet is answered after `trip_ns`."""

    packets: int
    gap_ns: int
    trip_ns: int  # of a first copy; of later ones it is the same; 0: nothing is answered
    lost: frozenset[int] = frozenset()  # first copies, by their number, that are never answered
    rto_ns: int = 200 * MS  # at most
    late_ns: int = 0  # so much later than it asked for a thread is woken
    lanes: int = LANES
    now_ns: int = 0
    copies: dict[int, list[int]] = field(default_factory=dict)  # by chunk: when each was sent

    def __post_init__(self) -> None:
        window = Congestion(KEPT, {"packets": self.packets, "gap_ns": self.gap_ns})
        limits = RtoLimits(max_ns=self.rto_ns, initial_ns=min(20 * MS, self.rto_ns))
        self.recovery = LossRecovery(self.lanes, limits, window.choice())
        self.free = list(range(self.lanes))
        self.chunk_of: dict[int, int] = {}
        self.next_chunk = 0
        self.could_send_ns: int | None = None  # the next chunk, since then
        self.waits_ns: list[int] = []  # of each chunk, until it was sent
        self.results: list[tuple[int, int, int]] = []  # when, chunk, lane

    def run(self, until_ns: int) -> None:
        """In virtual time, waking when something is due, as a worker does."""
        while self.now_ns < until_ns:
            while self.results and self.results[0][0] <= self.now_ns:
                _, chunk, lane = heapq.heappop(self.results)
                if self.chunk_of.get(lane) != chunk:
                    continue
                del self.chunk_of[lane]
                self.recovery.answered(lane, self.now_ns, is_own=True)
                self.free.append(lane)
            for lane, _ in self.recovery.due(self.now_ns):
                self._leaves(lane)
            self._send_new()
            self.now_ns = min(self._wakes_ns() + self.late_ns, until_ns)

    def _send_new(self) -> None:
        self._send_paced()
        self.recovery.note_paced(self._has_new())

    def _send_paced(self) -> None:
        while self._has_new():
            if self.could_send_ns is None:
                self.could_send_ns = self.now_ns
            if self.recovery.paced_ns > self.now_ns:
                return
            lane = self.free.pop()
            self.chunk_of[lane] = self.next_chunk
            self.next_chunk += 1
            self.recovery.sent(lane, self.chunk_of[lane], 0, self.now_ns)
            self._leaves(lane)
            self.waits_ns.append(self.now_ns - self.could_send_ns)
            self.could_send_ns = None

    def _has_new(self) -> bool:
        return bool(self.free) and self.recovery.has_room_for(self.next_chunk)

    def _leaves(self, lane: int) -> None:
        chunk = self.chunk_of[lane]
        sent = self.copies.setdefault(chunk, [])
        sent.append(self.now_ns)
        if self.trip_ns > 0 and (len(sent) > 1 or chunk not in self.lost):
            heapq.heappush(self.results, (self.now_ns + self.trip_ns, chunk, lane))

    def _wakes_ns(self) -> int:
        times = [self.results[0][0]] if self.results else []
        if self.recovery.deadline_ns is not None:
            times.append(self.recovery.deadline_ns)
        if self._has_new():
            times.append(self.recovery.paced_ns)
        assert times, "a worker that waits for something sleeps for ever"
        return max(min(times), self.now_ns + 1)  # as a clock goes on


PACES_NS = st.just(0) | st.integers(min_value=MS // 10, max_value=400 * MS)
WINDOWS = st.integers(min_value=1, max_value=LANES)
RTOS_NS = st.integers(min_value=2 * MS, max_value=400 * MS)
TRIPS_NS = st.integers(min_value=MS // 10, max_value=3 * SECONDS)
MOST_EVENTS = 3_000  # results and packets that a run may hold, so that a case stays short
short = settings(deadline=None, max_examples=60)


@short
@given(
    packets=WINDOWS,
    gap_ns=PACES_NS,
    trip_ns=TRIPS_NS,
    rto_ns=RTOS_NS,
    lost=st.frozensets(st.integers(min_value=0, max_value=40), max_size=20),
)
@example(packets=3, gap_ns=250 * MS, trip_ns=900 * MS, rto_ns=200 * MS, lost=frozenset({0}))
def test_a_new_packet_goes_within_two_gaps(
    packets: int, gap_ns: int, trip_ns: int, rto_ns: int, lost: frozenset[int]
) -> None:
    """Whatever is sent again meanwhile; so a window that has room is used."""
    sender = Sender(packets, gap_ns, trip_ns, lost, rto_ns)
    sender.run(min(20 * max(gap_ns, trip_ns), MOST_EVENTS * max(gap_ns, trip_ns // packets)))
    late_ns = max(sender.waits_ns)
    if sender.could_send_ns is not None:
        late_ns = max(late_ns, sender.now_ns - sender.could_send_ns)
    assert late_ns <= 2 * gap_ns


@short
@given(packets=WINDOWS, gap_ns=PACES_NS, rto_ns=RTOS_NS)
@example(packets=LANES, gap_ns=250 * MS, rto_ns=200 * MS)
@example(packets=LANES, gap_ns=0, rto_ns=400 * MS)
def test_while_nothing_is_heard_each_lane_is_sent_again(
    packets: int, gap_ns: int, rto_ns: int
) -> None:
    """One a round of probes at least, and a round is over when its probes are."""
    sender = Sender(packets, gap_ns, 0, rto_ns=rto_ns)
    probes = 16  # of a round that has grown: an eighth of a window, and this at least
    round_ns = max(rto_ns, probes * 2 * gap_ns)
    sender.run(packets * gap_ns + (packets + 10) * 2 * round_ns)
    assert sorted(sender.copies) == list(range(packets))
    assert min(len(sent) for sent in sender.copies.values()) > 1


@short
@given(packets=WINDOWS, gap_ns=PACES_NS, trip_ns=TRIPS_NS)
@example(packets=1, gap_ns=266_666_668, trip_ns=600_000_001)
def test_of_all_that_goes_at_most_one_and_a_half_times_the_pace_goes(
    packets: int, gap_ns: int, trip_ns: int
) -> None:
    """The shares of new packets and of those sent again together; probes come one a wake-up."""
    sender = Sender(packets, gap_ns, trip_ns)
    if gap_ns == 0 or gap_ns > sender.rto_ns:  # then probes alone are more, one a timeout
        return
    until_ns = 30 * gap_ns
    sender.run(until_ns)
    sent = sum(len(copies) for copies in sender.copies.values())
    assert sent <= 1.5 * until_ns / gap_ns + 10


@short
@given(gap_ns=st.integers(min_value=MS // 50, max_value=5 * MS), late_ns=st.integers(0, 4 * MS))
@example(gap_ns=MS // 40, late_ns=MS)
def test_a_thread_that_is_woken_late_keeps_the_pace(gap_ns: int, late_ns: int) -> None:
    """What it missed goes at once; a core that is late would else set the rate, for ever."""
    sender = Sender(1024, gap_ns, MS // 10, late_ns=late_ns, lanes=1024)
    sender.run(min(40 * (gap_ns + late_ns), 2_000 * gap_ns))
    assert sender.next_chunk >= 0.95 * sender.now_ns / gap_ns - late_ns / gap_ns - 2
