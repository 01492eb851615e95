"""The life of a slot, as a capture beside a reference switch tells it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ina.pcap import Capture, Packet, SlotLife, packets_of
from ina.pcap import follow as follow_all
from ina.protocol.slot_model import Outcome
from ina.protocol.spec import Flag, Kind
from tests.worlds.virtual.exchange import (
    JOB,
    SLOTS,
    Exchange,
    attachment,
    one_round,
    random_exchange,
    shared_round,
)

SAID = {
    Outcome.STALE: "stale",
    Outcome.DUPLICATE: "is in already",
    Outcome.REPLAY: "asks again",
    Outcome.RESULT: "as the last: the result goes to all",
}


def follow(seen: list[Packet], job: int, slot: int, worker_count: int | None = None) -> SlotLife:
    """Of the one switch."""
    (life,) = follow_all(seen, job, slot, worker_count=worker_count)
    return life


def packets(exchange: Exchange, folder: Path) -> list[Packet]:
    capture = Capture(exchange.write(folder / "a.pcap"))
    return [packet for frame in capture for packet in packets_of(frame)]


def contributions(life: SlotLife) -> list[str]:
    return [e.what for e in life.events if e.header.kind is Kind.CONTRIBUTION]


def test_one_round_word_by_word(tmp_path: Path) -> None:
    life = follow(packets(one_round(), tmp_path), JOB, 1)
    assert (life.workers, life.workers_known) == ([0, 1, 2], True)
    told = [(e.what, e.have, e.missing) for e in life.events]
    assert told == [
        ("takes the slot", [0], [1, 2]),
        ("joins", [0, 1], [2]),
        ("is in already: dropped", [0, 1], [2]),
        ("joins, as the last: the result goes to all", [0, 1, 2], []),
        ("result to worker 0", [0, 1, 2], []),
        ("result to worker 1", [0, 1, 2], []),
        ("result to worker 2", [0, 1, 2], []),
        ("asks again: the result goes to it alone", [0, 1, 2], []),
        ("result to worker 1, again", [0, 1, 2], []),
        ("takes the slot", [0], [1, 2]),
        ("stale: dropped", [0, 1, 2], []),
    ]
    assert [e.note for e in life.events] == [""] * len(life.events)
    first, second = life.rounds
    assert (first.complete, first.missing, first.without_result) == (True, [], [])
    assert list(first.joined) == [0, 1, 2]
    assert first.span_ns == pytest.approx(3 * 125_000, abs=2000)
    assert (dict(first.results), dict(first.asked_again)) == ({0: 1, 1: 2, 2: 1}, {0: 1, 1: 1})
    assert (second.complete, second.missing, second.tag.seq) == (False, [1, 2], 1 + SLOTS)


@pytest.mark.parametrize("seed", range(25))
def test_it_tells_what_the_switch_did(seed: int, tmp_path: Path) -> None:
    exchange = random_exchange(seed)
    seen = packets(exchange, tmp_path)
    headers = [p.header for p in seen if p.header and p.header.kind is Kind.CONTRIBUTION]
    for slot in range(SLOTS):
        life = follow(seen, JOB, slot, worker_count=exchange.workers)
        wanted = [
            outcome
            for header, outcome in zip(headers, exchange.outcomes, strict=True)
            if header.slot == slot
        ]
        for what, outcome in zip(contributions(life), wanted, strict=True):
            if outcome is None:
                assert what == "refused: an older epoch of the job"
            elif outcome is Outcome.ABSORBED:
                assert what in ("joins", "takes the slot")
            else:
                assert SAID[outcome] in what
        results = sum(e.what.startswith("result") for e in life.events)
        assert results == sum(r.results.total() for r in life.rounds)


def test_order_comes_from_the_times(tmp_path: Path) -> None:
    """A capture of several interfaces has a run of each one's packets after the other."""
    seen = packets(one_round(), tmp_path)
    apart = sorted(seen, key=lambda packet: packet.datagram.src)
    assert [e.what for e in follow(apart, JOB, 1).events] == [
        e.what for e in follow(seen, JOB, 1).events
    ]


def test_a_worker_that_cannot_be(tmp_path: Path) -> None:
    exchange = Exchange(2)
    exchange.contribute(0, 0)
    seen = packets(exchange, tmp_path)
    assert seen[0].header is not None
    for worker, told in ((1, ["refused: not a worker of the job"]), (32, []), (255, [])):
        other = replace(seen[0], header=replace(seen[0].header, worker=worker))
        life = follow([*seen, other], JOB, 0, worker_count=1)
        assert [e.what for e in life.events][1:] == told
    for worker, told in ((40, []), (254, []), (255, ["result to all"])):
        header = replace(seen[0].header, kind=Kind.RESULT, worker=worker, contributors=1)
        sent = seen[0].datagram
        back = replace(
            sent, src=sent.dst, src_port=sent.dst_port, dst=sent.src, dst_port=sent.src_port
        )
        other = replace(seen[0], header=header, datagram=back)
        life = follow([*seen, other], JOB, 0, worker_count=1)
        assert [e.what for e in life.events][1:] == told


def test_a_result_to_all_is_one_to_each(tmp_path: Path) -> None:
    """Behind one port: 0 and 1 share a copy, 2 has its own, and 1 asks for one."""
    life = follow(packets(shared_round(), tmp_path), JOB, 1)
    assert [e.what for e in life.events][3:] == [
        "joins, as the last: the result goes to all",
        "result to worker 2",
        "result to all",
        "asks again: the result goes to it alone",
        "result to worker 1, again",
    ]
    assert [e.note for e in life.events] == [""] * len(life.events)
    (round_,) = life.rounds
    assert (round_.without_result, round_.results_to_all) == ([], 1)
    assert dict(round_.results) == {2: 1, 1: 1}
    assert round_.results_seen == {0: 1, 1: 1, 2: 1}


def test_the_own_copy_of_who_does_not_listen_is_no_repeat(tmp_path: Path) -> None:
    """Also where it comes behind the one to all, and its worker had sent twice before."""
    exchange = shared_round()
    own, to_all = exchange.frames[4:6]
    assert (own["UDP"].dport, to_all["UDP"].dport) == (attachment(2).udp_port, 17761)
    own.time, to_all.time = to_all.time, own.time
    told = [(e.what, e.note) for e in follow(packets(exchange, tmp_path), JOB, 1).events]
    assert told[4:6] == [("result to all", ""), ("result to worker 2", "")]


def test_only_the_result_to_all_is_enough(tmp_path: Path) -> None:
    """A listener's own interface: no contributions of others, and a replay has an answer."""
    exchange = shared_round()
    exchange.frames = [f for f in exchange.frames if "17761" in str(f["UDP"].dport)]
    life = follow(packets(exchange, tmp_path), JOB, 1)
    (event,) = life.events
    assert (event.what, event.have) == ("result to all", [0, 1, 2])
    assert event.note == "no contribution of 0, 1, 2 in this capture"
    assert life.rounds[0].results_seen == {0: 1, 1: 1, 2: 1}
    exchange = shared_round()
    del exchange.frames[4]  # to worker 2; what is left answers the one who asks
    told = follow(packets(exchange, tmp_path), JOB, 1).events
    assert told[5].what.startswith("asks again")
    assert told[5].note == ""


def test_a_second_result_to_all_is_for_another_port_or_a_copy(tmp_path: Path) -> None:
    exchange = Exchange(2, listening=frozenset({0, 1}), ports=(1, 2))
    exchange.contribute(0, 0)
    exchange.contribute(1, 0)
    first, second = follow(packets(exchange, tmp_path), JOB, 0).events[2:]
    assert (first.what, first.note) == ("result to all", "")
    assert second.what == "result to all, again"
    assert second.note.startswith("for another port of the switch, or a copy")


def test_a_host_sees_itself_only(tmp_path: Path) -> None:
    exchange = one_round()
    mine = attachment(1)
    exchange.frames = [
        f for f in exchange.frames if mine.udp_port in (f["UDP"].sport, f["UDP"].dport)
    ]
    life = follow(packets(exchange, tmp_path), JOB, 1)
    assert life.workers == [0, 1, 2]
    assert life.events[0].missing == [0, 2]
    result = life.events[1]
    assert (result.what, result.have) == ("result to worker 1", [0, 1, 2])
    assert result.note == "no contribution of 0, 2 in this capture"
    assert life.events[2].what.startswith("asks again")


def test_a_result_lost_and_a_round_overtaken_are_noted(tmp_path: Path) -> None:
    exchange = Exchange(2)
    exchange.contribute(0, 0)
    exchange.contribute(0, SLOTS)  # worker 1 was never there: no worker may do this
    life = follow(packets(exchange, tmp_path), JOB, 0, worker_count=2)
    assert life.events[1].note == "but the round of seq 0 before it lacks 1"
    exchange = Exchange(2)
    exchange.contribute(0, 0)
    exchange.contribute(1, 0)
    exchange.frames = exchange.frames[:2]  # the switch's results are lost
    exchange.contribute(0, 0, flags=Flag.RESEND)
    life = follow(packets(exchange, tmp_path), JOB, 0)
    assert "no result seen yet" in life.events[2].note


def test_an_impostor_is_noted(tmp_path: Path) -> None:
    exchange = Exchange(2)
    exchange.contribute(0, 0)
    exchange.contribute(0, 0)
    exchange.frames[1]["UDP"].sport = 5
    life = follow(packets(exchange, tmp_path), JOB, 0)
    assert life.events[1].note == "worker 0 sent from 10.0.0.1:1024"


def test_workers_are_guessed_aloud(tmp_path: Path) -> None:
    exchange = Exchange(3)
    exchange.contribute(0, 0)
    exchange.contribute(2, 1)
    life = follow(packets(exchange, tmp_path), JOB, 0)
    assert (life.workers, life.workers_known) == ([0, 2], False)
    assert life.events[0].missing == [2]


def test_a_packet_that_is_captured_in_two_places_is_not_sent_again(tmp_path: Path) -> None:
    """As where a switch on the way only forwards it: its number among the copies is the same."""
    exchange = Exchange(2)
    exchange.contribute(0, 0)
    exchange.add(exchange.frames[0].copy())
    exchange.contribute(0, 0, flags=Flag.RESEND)
    life = follow(packets(exchange, tmp_path), JOB, 0, worker_count=2)
    told = [(event.what, event.note) for event in life.events]
    again = "is in already: dropped"
    seen_twice = "the same packet: a copy, or captured in two places"
    assert told == [("takes the slot", ""), (again, seen_twice), (again, "")]
    assert dict(life.rounds[0].asked_again) == {0: 1}
