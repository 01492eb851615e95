"""The fabric that a configuration describes."""

from __future__ import annotations

from ipaddress import IPv4Address

from ina.controller.config import make_config
from ina.controller.config.topology import fabric_of, island_of
from ina.fabric.graph import Place


def test_an_island_has_the_hosts_that_can_be_behind_it() -> None:
    config = make_config(
        {
            "switch": [
                {"name": "s1", "grpc_addr": "127.0.0.1:1", "data_host": "10.0.0.1"},
                {"name": "s2", "grpc_addr": "127.0.0.1:2", "data_host": "10.0.0.2"},
            ],
            "host": [
                {"address": "10.0.1.1", "switch": "s1", "port": 3},
                {"address": "10.0.1.2", "switch": "s2", "port": 4},
            ],
        },
        "test",
    )
    assert list(fabric_of(config).hosts) == [IPv4Address("10.0.1.1"), IPv4Address("10.0.1.2")]
    second = island_of(config, config.switches[1])
    assert second.switches == ("s2",)
    assert second.links == ()
    assert second.hosts == {IPv4Address("10.0.1.2"): Place("s2", 4)}
