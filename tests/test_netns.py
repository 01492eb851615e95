"""Namespaces and pairs between them: made, shaped, and by one module alone."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import shutil
import signal
import socket
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ina import netns
from ina.netns import End, NetnsError, signals_later
from tests.layers import PACKAGE, modules
from tests.sources import nodes
from tests.worlds.processes.namespaces import require_root


def interrupted(done: list[str], *, fails: bool) -> None:
    with signals_later():
        signal.raise_signal(signal.SIGINT)
        if fails:
            raise ValueError
        done.append("block")


def test_a_signal_takes_effect_at_the_end_of_the_block() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(done, fails=False)
    assert done == ["block"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_signal_is_not_lost_when_the_block_fails() -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted([], fails=True)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_signals_later_in_another_thread_changes_nothing() -> None:
    def check() -> None:
        with signals_later():
            assert signal.getsignal(signal.SIGTERM) is handler

    handler = signal.getsignal(signal.SIGTERM)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(check).result()


@pytest.fixture
def space() -> Iterator[str]:
    """A namespace; skips where there can be none."""
    require_root()
    name = f"ina{uuid.uuid4().hex[:6]}t"
    netns.add_host(name)
    yield name
    netns.delete(name)


def test_a_pair_from_here_to_there_carries_its_rate(space: str) -> None:
    here = f"i{space[3:9]}"
    netns.add_pairs([(End(None, here), End(space, "eth0"))])
    netns.shape(End(space, "eth0"), 1e9, 80 << 10, 1 << 20)
    assert here in os.listdir("/sys/class/net")
    assert "eth0" in netns.ip(space, "-br", "link", "show")
    (shaped,) = json.loads(
        netns.command("tc", "-n", space, "-json", "qdisc", "show", "dev", "eth0")
    )
    assert (shaped["kind"], shaped["options"]["rate"]) == ("tbf", 125_000_000)
    with netns.inside(space):
        assert {"eth0", "lo"} <= {name for _, name in socket.if_nameindex()}
        assert Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").read_text() == "1\n"
    with netns.inside(None):
        assert here in {name for _, name in socket.if_nameindex()}


@pytest.mark.parametrize("is_shaped", [False, True])
def test_nothing_leaves_an_end_until_that_is_taken_back(space: str, is_shaped: bool) -> None:
    here = f"i{space[3:9]}"
    there = End(space, "eth0")
    netns.add_pairs([(End(None, here), there)])
    netns.ip(None, "link", "set", here, "up")
    netns.ip(space, "link", "set", "eth0", "up")
    if is_shaped:
        netns.shape(there, 1e9, 80 << 10, 1 << 20)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x88B5)) as arrives:
        arrives.bind((here, 0x88B5))  # the Ethernet type of experiments
        arrives.settimeout(0.3)
        with netns.inside(space):
            leaves = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        with leaves:
            leaves.bind(("eth0", 0))

            def passes() -> bool:
                with contextlib.suppress(OSError):  # some kernels say that it was dropped
                    leaves.send(b"\xff" * 12 + b"\x88\xb5" + bytes(46))
                with contextlib.suppress(TimeoutError):
                    return len(arrives.recv(100)) == 60
                return False

            assert passes()
            netns.drop_all(there)
            assert not passes()
            netns.unshape(there)
            assert passes()


def test_what_ip_says_is_in_the_error(space: str) -> None:
    with pytest.raises(NetnsError, match=f"^ip -n {space} link set eth7 up: Cannot find device"):
        netns.ip(space, "link", "set", "eth7", "up")
    with (
        pytest.raises(NetnsError, match=r"^namespace ina-nowhere: No such file"),
        netns.inside("ina-nowhere"),
    ):
        pass


@pytest.mark.parametrize(("root", "tools", "why"), [
    (False, ("ip", "tc"), "needs root, for network namespaces"),
    (True, ("ip",), "needs the tc command (Debian package iproute2)"),
    (True, ("ip", "tc"), ""),
])  # fmt: skip
def test_why_there_can_be_none(
    root: bool, tools: tuple[str, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(shutil, "which", lambda tool: tool if tool in tools else None)
    assert netns.why_not(also=["tc"]) == why


def test_nothing_else_in_ina_calls_ip_or_tc() -> None:
    callers = {
        path.relative_to(PACKAGE).as_posix()
        for path in modules()
        for node in nodes(path)
        for words in [getattr(node, "elts", None) or getattr(node, "args", None)]
        if isinstance(words, list) and len(words) > 1
        if isinstance(words[0], ast.Constant) and words[0].value in ("ip", "tc")
    }
    # ina doctor tries whether it may, in a namespace without a name.
    assert callers == {"netns.py", "doctor/kernel.py"}
