"""Nothing is left of cables and switches, not even when their process is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ina.testing import bmv2_device
from ina.testing.bmv2_device import Bmv2Device
from ina.testing.links import Links, cannot_link

NAMESPACES = Path("/run/netns")
HOLD = """
import sys, time
from ina.testing.devices import open_device
with open_device(sys.argv[1]) as device:
    print(device._links.namespace, *device._links.switch_ends.values(), flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def root() -> None:
    """Skips where no cables can be made."""
    if why := cannot_link():
        pytest.skip(why)


def interfaces() -> set[str]:
    """Names in our own namespace."""
    return set(os.listdir("/sys/class/net"))


def test_cables_carry_frames_and_go() -> None:
    before = interfaces()
    with Links(2, switch_outside=True) as links:
        assert set(links.switch_ends.values()) <= interfaces()
        assert (NAMESPACES / links.namespace).exists()
    assert not (NAMESPACES / links.namespace).exists()
    assert interfaces() == before


@pytest.fixture(params=["soft-veth", pytest.param("bmv2", marks=pytest.mark.bmv2)])
def killed(request: pytest.FixtureRequest) -> list[str]:
    """Namespace and interfaces of a device whose process was killed."""
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, request.param], stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    names = holder.stdout.readline().split()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    return names


def test_the_next_one_removes_what_a_killed_process_has_left(killed: list[str]) -> None:
    namespace, *switch_ends = killed
    assert switch_ends
    with Links(1):
        assert not (NAMESPACES / namespace).exists()
    until = time.monotonic() + 30
    # The kernel takes a namespace and its cables apart in its own time.
    while interfaces() & set(switch_ends) or switches_on(switch_ends[0]):
        assert time.monotonic() < until, "cables or a switch are left"
        time.sleep(0.05)


@pytest.mark.bmv2
def test_a_switch_that_has_kept_too_much_is_started_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with Bmv2Device() as device:
        for most_bytes, same in ((1 << 40, True), (0, False)):
            monkeypatch.setattr(bmv2_device, "_MOST_RSS_BYTES", most_bytes)
            device.reset(64)
            before = switches_on(next(iter(device._links.switch_ends.values())))
            device.reset(64)
            after = switches_on(next(iter(device._links.switch_ends.values())))
            assert len(after) == 1
            assert (before == after) is same


def switches_on(interface: str) -> list[str]:
    """Processes that were started with the interface as an argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"@{interface}".encode() in path.read_bytes():
                found.append(path.parent.name)
        except OSError:  # it has just ended
            continue
    return found
