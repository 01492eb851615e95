"""Windows in Python: what they are told, what they may say, and what becomes of their mistakes."""

from __future__ import annotations

import functools
import gc
import pickle
import re
import weakref
from pathlib import Path
from typing import Any

import pytest

from ina._native.host import LossRecovery, RtoLimits
from ina.congestion import Batch, Choice, Congestion, CongestionError, WindowError
from ina.host.manner import Manner
from ina.host.ticket import Ticket
from ina.protocol.peer import Peer
from ina.sim.reading import make
from ina.sim.report import Report
from ina.sim.run import Simulation
from tests.worlds.fakes.tickets import direct_ticket
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual import windows
from tests.worlds.virtual.cores import MS
from tests.worlds.virtual.star import Star, even
from tests.worlds.virtual.windows import Broken, Kept

US = 1_000
MODULE = windows.__name__


@pytest.fixture(autouse=True)
def _fresh() -> None:
    Kept.forget()
    Broken.calls = 0


def own(name: str, **options: float) -> Congestion:
    return Congestion(f"{MODULE}:{name}", options)


def recovery(choice: Choice, lanes: int = 8) -> LossRecovery:
    return LossRecovery(lanes, RtoLimits(), choice)


def send(one: LossRecovery, lanes: range, now_ns: int) -> None:
    for lane in lanes:
        one.sent(lane, now_ns + lane, 0, now_ns)


# -- what it is told --


def test_a_batch_says_what_has_happened() -> None:
    one = recovery(own("Kept").choice())
    Kept.forget()
    send(one, range(4), 0)
    one.answered(0, 100 * US, marked=True, is_own=True)
    one.answered(1, 108 * US)
    one.answered(2, 116 * US, marked=True, marked_here=True, is_own=True)
    assert Kept.batches == []
    one.due(120 * US)
    mean_ns = 100 * US + 1 * US  # one eighth of what the second was longer,
    mean_ns += (116 * US - mean_ns) // 8
    assert Kept.batches == [
        Batch(
            now_ns=120 * US,
            answers=3,
            marked=2,
            marked_here=1,
            losses=0,
            timeouts=0,
            in_flight=4,
            latest_ns=116 * US,
            mean_ns=mean_ns,
            shortest_ns=100 * US,
            was_last=2,
            was_last_mean_ns=108 * US,
            was_last_shortest_ns=100 * US,
        )
    ]


def test_it_is_called_once_a_batch_and_not_where_nothing_came() -> None:
    one = recovery(own("Kept").choice())
    Kept.forget()
    for batch in range(1, 6):
        send(one, range(8), batch * MS)
        for lane in range(8):
            one.answered(lane, batch * MS + 100 * US)
        for _ in range(3):
            one.due(batch * MS + 100 * US)
    assert [it.answers for it in Kept.batches] == [8] * 5
    assert [it.now_ns for it in Kept.batches] == [it * MS + 100 * US for it in range(1, 6)]


def test_a_loss_and_a_timeout_are_in_the_batch_that_follows() -> None:
    one = recovery(own("Kept").choice())
    Kept.forget()
    send(one, range(2), 0)
    one.sent(2, 500, 0, MS)
    one.answered(2, MS + 100 * US)  # the two before have been overtaken
    assert len(one.due(MS + 100 * US)) == 2
    deadline_ns = one.deadline_ns
    while one.counters.timeouts == 0:
        assert deadline_ns is not None
        one.due(deadline_ns)
        deadline_ns = one.deadline_ns
    assert deadline_ns is not None
    assert len(Kept.batches) == 1  # nothing has come
    one.answered(0, deadline_ns)
    one.due(deadline_ns)
    first, second = Kept.batches
    assert (first.losses, first.timeouts, first.answers) == (0, 0, 1)
    assert (second.losses, second.timeouts, second.answers) == (1, 1, 1)
    assert second.latest_ns == 0  # its packet was sent more than once
    assert (second.mean_ns, second.was_last, second.was_last_mean_ns) == (100 * US, 0, 0)


# -- what it says --


def test_its_whole_packets_count_and_none_beyond_the_largest() -> None:
    assert recovery(own("Kept", packets=3.99).choice()).window_packets == 3
    choice = own("Kept", packets=float("inf")).choice()
    star = Star(2, slots=16, window=choice)
    assert all(worker.in_flight_limit == 8 for worker in star.workers)


def test_its_pace_holds_packets_up() -> None:
    one = recovery(own("Kept", gap_ns=700.9).choice())
    send(one, range(2), MS)
    assert one.paced_ns == MS + 700  # two may go at once, the third so much later


def test_each_share_has_a_window_of_its_own() -> None:
    choice = own("Kept").choice()
    Kept.forget()
    star = Star(2, slots=32, shares=[2, 1], window=choice)
    parts = random_parts(INT32, 2, 64 * 100, 1)
    assert all((got == sum(parts)).all() for got in star.all_reduce(parts))
    assert Kept.largest_of == [8, 8, 16]
    assert sum(it.answers for it in Kept.batches) >= 2 * 100


def test_one_that_stays_does_what_fixed_does() -> None:
    """Packet by packet: what all have counted, and when it was done."""
    ends, losses = [], 0
    for congestion in (Congestion("fixed"), own("Still")):
        star = Star(3, slots=32, way=even(20 * US, loss=0.02), window=congestion.choice(), seed=5)
        parts = random_parts(INT32, 3, 64 * 300, 1)
        assert all((got == sum(parts)).all() for got in star.all_reduce(parts))
        counters = [worker.counters for worker in star.workers]
        counted = [(it.packets_sent, it.losses, it.probes, it.spurious) for it in counters]
        network = star.network
        ends.append((network.now_ns, network.hops, network.happened, counted))
        losses = sum(it.losses for it in counters)
    assert ends[0] == ends[1]
    assert losses > 0


# -- its mistakes --


def batches(one: LossRecovery, count: int) -> None:
    for batch in range(1, count + 1):
        send(one, range(2), batch * MS)
        for lane in range(2):
            one.answered(lane, batch * MS + 100 * US)
        one.due(batch * MS + 100 * US)


def failure(choice: Choice) -> WindowError | None:
    assert choice.own is not None
    error: WindowError | None = choice.own.error
    return error


def test_what_it_raises_is_kept_and_it_goes_on_as_it_was() -> None:
    choice = own("Broken").choice()
    one = recovery(choice)
    batches(one, 2)
    assert failure(choice) is None
    batches(one, 3)
    assert one.window_packets == 3
    assert Broken.calls == 3  # and is not asked any more
    error = failure(choice)
    assert isinstance(error, WindowError)
    assert re.fullmatch(
        rf"the window '{MODULE}:Broken' failed in on_batch: ZeroDivisionError: .*"
        r" \(windows\.py:\d+\)",
        str(error),
    )
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert "print(1 // (batch.answers - batch.answers))" in error.detail


@pytest.mark.parametrize("number", range(len(Broken.wrong)))
def test_what_is_no_number_of_packets_is_its_mistake(number: int) -> None:
    choice = own("Broken", packets=number).choice()
    one = recovery(choice)
    batches(one, 4)
    said = f"says packets = {Broken.wrong[number]!r}: want a number, at least 1"
    error = failure(choice)
    assert error is not None
    assert said in str(error)
    assert error.detail == ""  # the line says it all
    assert one.window_packets == 3


@pytest.mark.parametrize("number", range(len(Broken.paces)))
def test_what_is_no_pace_is_its_mistake(number: int) -> None:
    choice = own("Broken", pace=number).choice()
    one = recovery(choice)
    batches(one, 4)
    assert f"says pace = {Broken.paces[number]!r}: want Pace(" in str(failure(choice))
    assert one.window_packets == 3


def test_one_that_wants_to_exit_does_not() -> None:
    choice = own("Broken", leaves=1).choice()
    batches(recovery(choice), 4)
    assert "failed in on_batch: SystemExit: 7" in str(failure(choice))


def test_windows_go_when_their_choice_and_core_do() -> None:
    choice = own("Broken").choice()
    held = weakref.ref(choice.own)
    one = recovery(choice)
    batches(one, 1)
    del choice
    gc.collect()
    assert held() is not None
    del one
    gc.collect()
    assert held() is None


# -- its name --


@pytest.mark.parametrize(
    ("algorithm", "options", "complaint"),
    [
        ("my module:X", {}, "the window 'my module:X': want module:Class, as my_module:MyWindow"),
        (":X", {}, "want module:Class"),
        ("x:", {}, "want module:Class"),
        ("no_such_module:X", {}, "there is no module 'no_such_module' in "),
        (f"{MODULE}.inner:X", {}, f"there is no module '{MODULE}.inner' in "),
        (f"{MODULE}:X", {}, "windows.py has no X; windows there: Still, Kept, Aimd, "),
        (f"{MODULE}:NoWindow", {}, "is no class derived from ina.congestion.Window"),
        (f"{MODULE}:Window", {}, "is no class derived from ina.congestion.Window"),
        (f"{MODULE}:Unfinished", {}, "windows.py has no on_batch"),
        (f"{MODULE}:Still", {"gain": 1.0}, "got an unexpected keyword argument 'gain'; it has no"),
        (f"{MODULE}:Kept", {"gain": 1.0}, "argument 'gain'; it has packets, gap_ns"),
        (f"{MODULE}:NeverMade", {}, "failed with largest = 1: it says packets = 0.5: want"),
    ],
)
def test_what_there_is_not_is_refused(
    algorithm: str, options: dict[str, float], complaint: str
) -> None:
    with pytest.raises(CongestionError, match=re.escape(complaint)):
        Congestion(algorithm, options).choice()


def test_a_module_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "failing_window.py").write_text("import no_such_module_either\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    complaint = "its module fails: ModuleNotFoundError: No module named 'no_such_module_either'"
    with pytest.raises(CongestionError, match=complaint) as raised:
        Congestion("failing_window:X").choice()
    assert "failing_window.py" in raised.value.detail


def test_nothing_is_imported_before_the_choice_is_made() -> None:
    one = Congestion("no_such_module:X", {"gain": 0.5})
    assert pickle.loads(pickle.dumps(one)) == one
    assert str(one) == "no_such_module:X (gain 0.5)"
    assert one.is_own
    assert not Congestion("fixed").is_own


@pytest.mark.parametrize(
    ("text", "algorithm", "options"),
    [
        ("fixed", "fixed", {}),
        ("fixed,packets=8", "fixed", {"packets": 8}),
        ("m:W,gain=0.0625,rounds=3", "m:W", {"gain": 0.0625, "rounds": 3}),
    ],
)
def test_one_word_says_it_all(text: str, algorithm: str, options: dict[str, float]) -> None:
    one = Congestion.from_text(text)
    assert one == Congestion(algorithm, options)
    assert one.text == text
    assert [type(it) for it in one.options.values()] == [type(it) for it in options.values()]


@pytest.mark.parametrize("text", ["fixed,packets", "fixed,=8", "fixed,packets=few", "m:W,"])
def test_a_word_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CongestionError, match="want NAME=NUMBER"):
        Congestion.from_text(text)


# -- who may name it --


def manner(congestion: Congestion | None) -> Manner:
    return Manner(1, RtoLimits(), False, congestion, Peer.at(("127.0.0.1", 1)))


def told(congestion: Congestion) -> Ticket:
    return direct_ticket("digits", 1, 1, 0, 2, 64, 64, "127.0.0.1", 1, congestion=congestion)


def test_a_controller_cannot_make_a_worker_import_code() -> None:
    complaint = f"digits' rank 0: the controller asks for '{MODULE}:Still', a class of Python's"
    with pytest.raises(CongestionError, match=re.escape(complaint)):
        manner(None).choice(told(own("Still")))
    with pytest.raises(CongestionError, match="each worker must ask for itself"):
        Congestion.from_table({"algorithm": f"{MODULE}:Still"})


def test_a_worker_that_asked_for_it_gets_its_own() -> None:
    for theirs in (own("Kept"), Congestion("fixed"), Congestion("no_such_module:X")):
        mine = manner(own("Still"))
        choice = mine.choice(told(theirs))
        assert choice.algorithm == f"{MODULE}:Still"
        assert mine.choice(told(Congestion())) is choice  # also by another mapping
        assert mine.window_error() is None


# -- an example that decides --


@functools.cache
def incast(congestion: Congestion) -> tuple[Report, list[Any]]:
    scenario = make(
        {
            "topology": {"hosts": 4},
            "link": {"rate_gbit": 10, "delay_us": 5, "marking": "step", "mark_kib": 16},
            "limit_s": 5,
            "congestion": {"algorithm": congestion.algorithm, **congestion.options},
            "job": [
                {"workers": 4, "steps": 3, "tensors": [{"elems": 60_000, "dtype": "int32"}]},
                {"name": "b", "workers": 4, "steps": 3, "tensors": [{"elems": 60_000}]},
            ],
        }
    )
    report = Simulation(scenario, 3).run()
    assert report.violations == []
    assert report.sums_checked == 2 * 3 * 4
    return report, [report.jobs, report.ports, report.packet_hops, report.virtual_s, report.events]


def test_a_run_of_one_that_stays_is_that_of_fixed_byte_for_byte() -> None:
    _, fixed = incast(Congestion("fixed"))
    _, still = incast(own("Still"))
    assert repr(still) == repr(fixed)


def test_one_that_halves_on_marks_gives_way_and_is_marked_less() -> None:
    fixed, _ = incast(Congestion("fixed"))
    aimd, _ = incast(own("Aimd"))
    assert [job.in_flight_limit_min for job in fixed.jobs] == [256, 256]
    assert max(job.in_flight_limit_min for job in aimd.jobs) < 64
    marked = [sum(job.ecn_marked for job in report.jobs) for report in (fixed, aimd)]
    assert 0 < 4 * marked[1] < marked[0]


def test_its_mistake_ends_the_run() -> None:
    with pytest.raises(WindowError, match="failed in on_batch: ZeroDivisionError"):
        incast(own("Broken"))


def test_random_numbers_of_packets_never_spoil_a_sum() -> None:
    choice = own("Restless", seed=3).choice()
    star = Star(3, slots=32, way=even(20 * US, loss=0.02), window=choice, seed=5)
    parts = random_parts(INT32, 3, 64 * 200, 1)
    assert all((got == sum(parts)).all() for got in star.all_reduce(parts))
