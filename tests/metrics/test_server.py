"""The Prometheus endpoint: what it serves, how it refuses, that nothing of it is left."""

from __future__ import annotations

import os
import socket
import threading
import urllib.request
from collections.abc import Iterable

import pytest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ina.metrics import MetricsAddressError, MetricsListenError, MetricsServer, parse_address
from tests.worlds.fakes.scrape import scrape


class One(Collector):
    def collect(self) -> Iterable[Metric]:
        yield GaugeMetricFamily("ina_test", "One.", value=1)


def test_it_serves_the_collectors_and_the_process() -> None:
    with MetricsServer("127.0.0.1:0", [One()]) as server:
        found = scrape(server.address)
    assert found.value("ina_test") == 1
    assert found.value("process_open_fds") > 0
    assert "python_gc_objects_collected" not in found.families  # not the global registry


def test_after_close_the_port_is_free_and_the_thread_gone() -> None:
    before = set(threading.enumerate())
    server = MetricsServer("127.0.0.1:0", [])
    server.close()
    server.close()
    assert set(threading.enumerate()) <= before
    with MetricsServer(server.address, []) as again:
        assert again.address == server.address


@pytest.mark.parametrize("address", ["", "9464", ":9464", "host:", "host:port", "host:65536"])
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(MetricsAddressError, match="expected HOST:PORT"):
        parse_address(address)


def test_an_address_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        said = f"metrics: cannot listen on {address}: Address already in use"
        with pytest.raises(MetricsListenError, match=said):
            MetricsServer(address, [])


def test_a_forked_child_does_not_hold_the_port() -> None:
    with MetricsServer("127.0.0.1:0", [One()]) as server:
        number = int(server.address.rpartition(":")[2])
        ready, told = os.pipe()
        wait, end = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(told, b"r")
            os.read(wait, 1)
            os._exit(0)
        os.read(ready, 1)
    try:
        with socket.socket() as free:  # without SO_REUSEADDR a listener elsewhere would refuse it
            free.bind(("127.0.0.1", number))
            free.listen()
    finally:
        os.write(end, b"e")
        os.waitpid(child, 0)
        for descriptor in (ready, told, wait, end):
            os.close(descriptor)


def test_a_client_that_says_nothing_hinders_nobody() -> None:
    with MetricsServer("127.0.0.1:0", [One()]) as server:
        host, _, port = server.address.rpartition(":")
        silent = socket.create_connection((host, int(port)))
        with (
            silent,
            urllib.request.urlopen(f"http://{server.address}/metrics", timeout=30) as reply,
        ):
            assert reply.status == 200
