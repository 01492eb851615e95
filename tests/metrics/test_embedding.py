"""Services of embeddings as metrics, and ``ina embed show``, which reads them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from ina.cli.embed import show
from ina.embed.bags import Bags
from ina.embed.metrics import ServiceCollector
from ina.embed.replicas import Replicas
from ina.embed.service import Door, Service
from ina.extension.embed import Batch, GroupConfig, Optimizer, Rule, TableSpec
from ina.metrics import MetricsServer
from tests.worlds.fakes.scrape import scrape
from tests.worlds.processes.command import inside

SPECS = [TableSpec(rows=40, dim=4, owners=2), TableSpec(rows=9, dim=2, first_owner=1)]
NAMES = ["user", "item"]


@pytest.fixture
def services() -> Iterator[list[Service]]:
    """Of two hosts, of which host 0 has looked up seven rows and two bags, twice, in one step."""
    doors = [Door("127.0.0.1") for _ in range(2)]
    peers = [door.peer for door in doors]
    found = []
    for host, door in enumerate(doors):
        config = GroupConfig(
            key=5, host=host, hosts=2, tables=SPECS, optimizer=Optimizer(rule=Rule.SGD)
        )
        found.append(Service(door, config, peers, names=NAMES))
    yield found
    for one in found:
        one.close()


def ask(service: Service, step: int) -> None:
    rows, ids = np.arange(7), np.array([0, 1, 2, 3, 4, 5, 6, 7])
    starts = np.array([0, 4])
    batch = Batch(
        SPECS,
        [
            ("user", 0, 7, rows.ctypes.data, 7, 0, 0, False, False),
            ("item", 1, 8, ids.ctypes.data, 2, starts.ctypes.data, 0, False, False),
        ],
    )
    vectors = [np.empty((7, 4), np.float32), np.empty((2, 2), np.float32)]
    service.look_up_batch(step, batch).take([one.ctypes.data for one in vectors])


def test_what_services_count_is_served_and_shown(
    services: list[Service], capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = services
    first.native.resize_cache(1 << 20)
    ask(first, 0)
    ask(first, 0)
    with MetricsServer("127.0.0.1:0", [ServiceCollector()]) as server:
        found = scrape(server.address)
        of = {"rank": "0", "module": str(first.number)}
        user = {**of, "table": "user"}
        others = sum(row in second.rows(0) for row in range(7))
        assert found.value("ina_embed_rows_total", **user) == 14
        assert found.value("ina_embed_bags_total", **of, table="item") == 4
        assert found.value("ina_embed_cache_misses_total", **user) == others > 0
        assert found.value("ina_embed_cache_hits_total", **user) == others
        sent = found.value("ina_embed_bytes_total", **of, direction="sent")
        assert sent == first.native.traffic.sent_bytes > 0
        shown = json.loads(inside(capsys, "embed", "show", server.address, "--json").out)
        (own,) = (one for one in shown if one["module"] == first.number)
        assert (own["rank"], own["sent_bytes"]) == (0, sent)
        assert own["tables"]["user"]["rows"] == 14
        assert own["tables"]["item"]["bags"] == 4
        text = inside(capsys, "embed", "show", server.address).out
        assert f"rank 1, module {second.number}" in text
        assert "retransmissions" in text


def test_replicas_are_counted(services: list[Service]) -> None:
    """Row 3 of the first table becomes hot on both."""
    replicas = [Replicas(one, 1) for one in services]
    for service in services:
        service.end_step(0, 1.0)
    for service in services:
        service.wait_for_version(1)
    wanted = [np.array([3], np.uint32), np.empty(0, np.uint32)]
    threads = [threading.Thread(target=one.change, args=(1, wanted, 100)) for one in replicas]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    vectors = services[0].look_up(1, 0, Bags.of([3, 3, 4], limit=40)).wait()
    assert vectors.shape == (3, 4)
    with MetricsServer("127.0.0.1:0", [ServiceCollector()]) as server:
        found = scrape(server.address)
    of = {"rank": "0", "module": str(services[0].number)}
    assert found.value("ina_embed_hot_hits_total", **of, table="user") == 2
    assert found.value("ina_embed_hot_rows", **of, table="user") == 1
    assert found.value("ina_embed_hot_rows", **of, table="item") == 0
    assert found.value("ina_embed_refreshes_total", **of) == 1
    assert found.value("ina_embed_version", **of) == 1


def test_a_service_that_is_closed_is_not_served(services: list[Service]) -> None:
    services[1].close()
    with MetricsServer("127.0.0.1:0", [ServiceCollector()]) as server:
        samples = scrape(server.address).families["ina_embed_version"].samples
    assert services[1].number not in {int(one.labels["module"]) for one in samples}


def test_a_process_without_services_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with MetricsServer("127.0.0.1:0", []) as server:
        done = inside(capsys, "embed", "show", server.address)
    assert (done.code, done.err.strip()) == (
        2,
        f"error: {server.address}: no service of embeddings runs there",
    )


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "no metrics"),
        (b"HTTP/1.0 200 OK\r\n\r\nina_embed_rows_total{rank=\n", "is no metrics"),
        (b'HTTP/1.0 200 OK\r\n\r\nina_embed_version{rank="x",module="0"} 1\n', "is no metrics"),
        (b"HTTP/1.0 200 OK\r\n\r\nina_embed_version 1\n", "is no metrics"),
        (b"\xff\xfe\x00", "no metrics"),
    ],
)
def test_who_says_nothing_or_nonsense_is_named(
    answer: bytes,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(show, "_TIMEOUT_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(4096)
                if answer:
                    client.sendall(answer)
                else:
                    client.recv(1)  # until the other gives up

        thread = threading.Thread(target=serve)
        thread.start()
        done = inside(capsys, "embed", "show", address)
        thread.join()
    assert done.code == 2
    assert done.err.startswith(f"error: {address}: ")
    assert said in done.err
