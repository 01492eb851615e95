"""The bare probe that says whether AF_XDP would pay: it moves frames in both ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.af_xdp import WAYS, Cable, Sample, build, gain, rates, sample
from ina import netns
from ina.errors import UnavailableError

needs_namespaces = pytest.mark.skipif(bool(netns.why_not()), reason=netns.why_not())


@needs_namespaces
def test_both_ways_move_frames(tmp_path: Path) -> None:
    program = build(tmp_path)
    cable = Cable()
    try:
        for way in WAYS:
            try:
                found = sample(program, cable, way, 0.2)
            except UnavailableError as error:
                pytest.skip(f"no native XDP on veth here: {error}")
            assert found.way == way
            assert found.frames_per_second > 0
            assert 0 <= found.lost < 1
    finally:
        cable.close()
    assert not any((netns.NETNS_DIR / space).exists() for space in cable.spaces)


@needs_namespaces
def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    program = build(tmp_path)
    cable = Cable()
    try:
        netns.ip(cable.spaces[1], "link", "set", "eth0", "name", "eth1")
        with pytest.raises(UnavailableError, match=r"^af_xdp_probe: bind to queue 0: "):
            sample(program, cable, "xdp", 0.1)
    finally:
        cable.close()


def test_without_a_compiler_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UnavailableError, match="no-such-compiler: No such file"):
        build(tmp_path)


def test_the_gain_is_of_medians() -> None:
    samples = [Sample(way, rate, 0.0, 1.0) for way, rate in (("udp", 4.0), ("xdp", 1.0))]
    samples += [Sample(way, rate, 0.0, 1.0) for way, rate in (("udp", 6.0), ("xdp", 4.0))]
    assert rates(samples, "udp").median == 5.0
    assert gain(samples) == 0.5
