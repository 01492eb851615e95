"""The life of a slot at each switch of a tree, as captures in several places tell it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from scapy.layers.l2 import Ether
from scapy.utils import wrpcap

from ina.cli.main import run
from ina.pcap import Address, Capture, SlotLife, follow, packets_of
from ina.protocol.spec import UDP_PORT, Flag, path_of
from tests.worlds.virtual.exchange import JOB
from tests.worlds.virtual.racks import HOSTS, LEAVES, PATHS, SPINE, WIDTHS, Racks


def with_a_loss() -> Racks:
    """The first leaf's sum is lost on its way up; rank 0 asks until it has its result, and rank 1
    asks once more."""
    racks = Racks()
    racks.contribute(0, 1)
    racks.contribute(1, 1, lost=lambda _, to: to == SPINE)
    racks.contribute(2, 1)
    racks.contribute(0, 1, Flag.RESEND)
    racks.contribute(1, 1, Flag.RESEND)
    return racks


def lives_of(capture: Path, worker_count: int | None = None) -> dict[str, SlotLife]:
    """By the switch's address."""
    packets = [packet for frame in Capture(capture) for packet in packets_of(frame)]
    return {it.switch.ipv4: it for it in follow(packets, JOB, 1, worker_count=worker_count)}


def told(life: SlotLife) -> list[tuple[str, str]]:
    return [(event.who, event.what) for event in life.events]


def ranks(life: SlotLife) -> list[int]:
    """Whose packets they are or were caused by."""
    paths = [path_of(path, WIDTHS) for path in PATHS]
    return [paths.index(event.path) for event in life.events]


def test_the_root_word_by_word(tmp_path: Path) -> None:
    lives = lives_of(with_a_loss().write(tmp_path / "a.pcap"))
    assert list(lives) == [SPINE, *LEAVES]
    spine = lives[SPINE]
    assert (spine.in_tree, spine.has_parent) == (True, False)
    assert (spine.workers, spine.workers_known) == ([0, 1], True)
    first, second = (f"child {index}, a switch of level 1" for index in (0, 1))
    assert told(spine) == [
        (first, "takes the slot"),  # and is lost, which the capture cannot tell
        (second, "joins, as the last: the result goes to all"),
        (first, "asks again: the result goes to it alone"),
        ("switch", "result to child 0"),
        ("switch", "result to child 1"),
        (first, "asks again: the result goes to it alone"),
        ("switch", "result to child 0, again"),
    ]
    assert ranks(spine) == [1, 2, 0, 0, 0, 1, 1]
    assert "no result seen yet" in spine.events[2].note


def test_a_leaf_word_by_word(tmp_path: Path) -> None:
    """Its sums go up, and what comes down has the root's contributors: its children are others."""
    racks = with_a_loss()
    leaf = lives_of(racks.write(tmp_path / "a.pcap"), worker_count=2)[LEAVES[0]]
    assert (leaf.has_parent, leaf.parents) == (True, [Address(SPINE, UDP_PORT)])
    up = f"sends its sum up, as child 0 of {SPINE}:{UDP_PORT}"
    assert told(leaf) == [
        ("child 0", "takes the slot"),
        ("child 1", "joins, as the last: the sum goes up"),
        ("switch", up),
        ("child 0", "asks again: the sum goes up again"),
        ("switch", f"{up}, again"),
        ("parent", "gets the result, for all below"),
        ("switch", "passes down: result to child 0"),
        ("switch", "passes down: result to child 1"),
        ("child 1", "asks again: the sum goes up again"),
        ("switch", f"{up}, again"),
        ("parent", "gets the result, for the one that asked"),
        ("switch", "passes down: result to child 1, again"),
    ]
    assert ranks(leaf)[:4] == [0, 1, 1, 0]
    (round_,) = leaf.rounds
    assert (round_.complete, round_.sums_up, dict(round_.results)) == (True, 3, {0: 1, 1: 2})
    assert [e.note for e in leaf.events if "no result seen" not in e.note] == [""] * 11


def test_who_else_is_below_a_leaf_is_not_guessed(tmp_path: Path) -> None:
    """The second leaf has one child, which is no worker of the root's two."""
    leaf = lives_of(with_a_loss().write(tmp_path / "a.pcap"))[LEAVES[1]]
    assert (leaf.workers, leaf.workers_known) == ([0], False)
    assert told(leaf)[0] == ("child 0", "takes the slot, as the last that this capture has")
    assert ranks(leaf)[0] == 2


def test_an_uplink_tells_the_root_s_life(tmp_path: Path) -> None:
    lives = lives_of(with_a_loss().write(tmp_path / "a.pcap", (LEAVES[0], SPINE)))
    assert list(lives) == [SPINE]
    events = lives[SPINE].events
    assert [event.what for event in events] == [
        "takes the slot",
        "is in already: dropped",
        "result to child 0",
        "asks again: the result goes to it alone",
        "result to child 0, again",
    ]
    assert events[2].note == "no contribution of 1 in this capture"


def test_a_hosts_own_interface_tells_that_its_switch_is_below_another(tmp_path: Path) -> None:
    """By the path, which says another index for the root's child."""
    lives = lives_of(with_a_loss().write(tmp_path / "a.pcap", (HOSTS[1], LEAVES[0])))
    leaf = lives[LEAVES[0]]
    assert (leaf.has_parent, leaf.parents) == (True, [])
    assert told(leaf) == [
        ("child 1", "takes the slot, as the last that this capture has"),
        ("switch", "passes down: result to child 1"),
        ("child 1", "asks again: the sum goes up again if it is complete"),
        ("switch", "passes down: result to child 1, again"),
    ]


def test_whose_chunk_it_is_says_nothing_of_the_tree(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    racks = Racks()
    for rank in (2, 0, 1):
        racks.contribute(rank, 1, owner=2)
    capture = racks.write(tmp_path / "a.pcap", (HOSTS[1], LEAVES[0]))
    leaf = lives_of(capture)[LEAVES[0]]
    assert (leaf.has_parent, ranks(leaf)) == (True, [1, 1])
    assert run(["pcap", "follow", str(capture), "--job", str(JOB), "--slot", "1"]) == 0
    said = capsys.readouterr().out
    assert "scatter; path 0x200; owner 0x400" in said
    assert "scatter; caused by path 0x200; owner 0x400" in said


def test_a_leafs_uplinks_and_results_without_contributions(tmp_path: Path) -> None:
    racks = with_a_loss()
    racks.frames = [it for it in racks.frames if it[0] not in HOSTS]
    leaf = lives_of(racks.write(tmp_path / "a.pcap"))[LEAVES[0]]
    assert leaf.events[0].what.startswith("sends its sum up")
    assert leaf.events[0].note == "no contribution of any child in this capture"


@pytest.mark.parametrize(
    ("option", "switches"),
    [([], [SPINE, *LEAVES]), (["--switch", f"{SPINE}:{UDP_PORT}"], [SPINE])],
)
def test_the_command_has_a_part_for_each_switch(
    option: list[str], switches: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = str(with_a_loss().write(tmp_path / "a.pcap"))
    command = ["pcap", "follow", capture, "--job", str(JOB), "--slot", "1", *option]
    assert run(command) == 0
    said = capsys.readouterr().out
    heads = [line for line in said.splitlines() if line.startswith("job ")]
    assert [head.split()[6] for head in heads] == [f"{it}:{UDP_PORT};" for it in switches[:1]] + [
        f"{it}:{UDP_PORT}," for it in switches[1:]
    ]
    assert all(f"below {SPINE}:{UDP_PORT}; children 0" in head for head in heads[1:])
    assert "caused by path 0x400" in said
    assert run([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["switches"]
    assert [it["switch"] for it in found] == [f"{it}:{UDP_PORT}" for it in switches]
    assert found[0]["events"][0]["who"] == "child 0, a switch of level 1"
    assert found[0]["events"][1]["whose"] == 0x400000


def test_a_wrong_address_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["pcap", "follow", "a", "--job", "1", "--slot", "1", "--switch", "leaf1"]
    assert run(command) == 2
    assert "--switch leaf1: not IPV4:UDP_PORT" in capsys.readouterr().err


def two_ends(racks: Racks, folder: Path) -> list[Path]:
    """A capture at each end of each link, as `ina emulate --pcap` makes them."""
    ends: dict[str, list[Ether]] = {}
    for source, to, frame in racks.frames:
        for name, late_s in ((f"{source}-{to}", 0.0), (f"{to}-{source}", 0.000_02)):
            seen: Any = frame.copy()
            seen.time = float(frame.time) + late_s
            ends.setdefault(name, []).append(seen)
    for name, frames in ends.items():
        wrpcap(str(folder / f"{name}.pcap"), frames, nano=True)
    return sorted(folder.glob("*.pcap"))


def test_both_ends_of_a_link_tell_of_one_packet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    racks = with_a_loss()
    alone = lives_of(racks.write(tmp_path / "all"))
    files = two_ends(racks, tmp_path)
    packets = [packet for file in files for it in Capture(file) for packet in packets_of(it)]
    both = {it.switch.ipv4: it for it in follow(packets, JOB, 1)}
    assert list(both) == list(alone)
    for address, life in both.items():
        assert told(life) == told(alone[address])
        assert [event.note for event in life.events] == [it.note for it in alone[address].events]
        assert all(len(event.elsewhere) == 1 for event in life.events)
        assert [it.results for it in life.rounds] == [it.results for it in alone[address].rounds]

    assert run(["pcap", "follow", *map(str, files), "--job", str(JOB), "--slot", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{LEAVES[0]}-{SPINE} 1 +1" in lines[3]
    assert all(len(line.encode()) <= 240 for line in lines)
    assert all(line == line.rstrip() for line in lines)


def test_a_packet_that_one_place_has_twice_is_two(tmp_path: Path) -> None:
    racks = Racks()
    racks.contribute(0, 1)
    racks.frames += [(source, to, frame.copy()) for source, to, frame in racks.frames]
    files = two_ends(racks, tmp_path)
    packets = [packet for file in files for it in Capture(file) for packet in packets_of(it)]
    (leaf,) = [it for it in follow(packets, JOB, 1) if it.switch.ipv4 == LEAVES[0]]
    assert [len(event.elsewhere) for event in leaf.events] == [1, 1]
    assert "the same packet" in leaf.events[1].note
