"""Two receive queues, two processors, few slots: no sum is wrong, and without a lock some are.

Frames come by two cables, each of a worker with a processor of its own, which then runs the
switch's program on them; whoever gets a result looks at all of its values.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from ina import netns
from ina.bench.pipeline import install
from ina.bench.pipeline_frames import FRAME_HEADER_BYTES, Batch
from ina.p4 import compiled, names
from ina.protocol.spec import HEADER_BYTES
from ina.switch.emit_ebpf import statements
from ina.switch.port_set import Impairment
from ina.switch.ports import AfPacketPort
from ina.switch.targets import xdp_target
from ina.switch.xdp.compile import built
from ina.switch.xdp.libbpf import Object
from ina.switch.xdp.links import Attached
from ina.testing.links import Links, cannot_link
from ina.testing.soft_device import cannot_run_xdp

FRAMES = 500_000
"""Of each of two workers, at a time."""
RESULTS, MOST_TRIES = 10_000, 20
AT_ONCE = 1
"""So each frame is summed before the next one is made, and the two stay in step."""
VALUES, WORKERS, SLOTS = 64, 2, 2
SOURCE = Path(__file__).with_name("two_queues.c")
HEAD = FRAME_HEADER_BYTES + HEADER_BYTES
WHY = cannot_run_xdp() or cannot_link()

pytestmark = [
    pytest.mark.skipif(bool(WHY), reason=WHY or "it can run"),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two processors"),
]


@contextmanager
def running(cache: Path) -> Iterator[Object]:
    """A job of two workers around the kernel, and what makes its frames and looks at results."""
    target = xdp_target(cache, at_ports=True)
    with ExitStack() as opened:
        links = opened.enter_context(Links(WORKERS, switch_outside=True, mtu_bytes=1500))
        pipeline = opened.enter_context(target.load(compiled(VALUES).bmv2_json))
        specs = [AfPacketPort(port, end) for port, end in links.switch_ends.items()]
        ports = target.ports(specs, names.CPU_PORT, Impairment())
        ports.open()
        opened.callback(ports.close)
        ports.start()
        opened.callback(ports.stop)
        ports.install(pipeline)
        install(pipeline, WORKERS)
        hosts = Object(built(SOURCE, {"VALUES": VALUES, "SLOTS": SLOTS}, cache))
        opened.callback(hosts.close)
        batch = Batch(VALUES, WORKERS, np.random.default_rng(1))
        with netns.inside(links.namespace):
            for port, end in links.host_ends.items():
                index, key = socket.if_nametoindex(end), struct.pack("<I", port - 1)
                head = batch.frames[0, port - 1].tobytes()[:HEAD].ljust(80, b"\0")
                hosts.maps["heads"].write(key, head)
                hosts.maps["ways"].write(key, struct.pack("<I", index))
                attached = Attached.attach(hosts.program("look"), index)
                opened.callback(attached.close)
        yield hosts


def seen(hosts: Object) -> tuple[int, int]:
    """Results, and how many of them were wrong."""
    processors = os.cpu_count() or 1
    rows = [
        hosts.maps["seen"].read(struct.pack("<I", which), 8 * 64 * processors) or b""
        for which in range(2)
    ]
    results, wrong = (sum(it for (it,) in struct.iter_unpack("<Q", row)) for row in rows)
    return results, wrong


def send(hosts: Object, frames: int) -> None:
    """So many by each of both."""
    ready = threading.Barrier(WORKERS)

    def worker(number: int, processor: int) -> None:
        os.sched_setaffinity(0, {processor})  # of this thread
        ready.wait(60)
        hosts.send(f"send_{number}", bytes(HEAD + 4 * VALUES), count=frames, batch=AT_ONCE)

    processors = sorted(os.sched_getaffinity(0))[:WORKERS]
    threads = [threading.Thread(target=worker, args=it) for it in enumerate(processors)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)


def test_no_sum_is_wrong(tmp_path: Path) -> None:
    """Both processors at once, as often as others let them."""
    with running(tmp_path) as hosts:
        for _ in range(MOST_TRIES):
            send(hosts, FRAMES)
            results, wrong = seen(hosts)
            assert wrong == 0
            if results >= RESULTS:
                return
    raise AssertionError(f"{results} results: the two processors were never at work together")


@pytest.mark.long
def test_without_the_lock_some_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statements, "LOCK", "")
    monkeypatch.setattr(statements, "UNLOCK", "")
    with running(tmp_path) as hosts:
        for _ in range(MOST_TRIES):
            send(hosts, FRAMES)
            if seen(hosts)[1]:
                return
    raise AssertionError("no sum was wrong")
