"""Mode shared in the controller's file: programs, aggregators, what is wrong with them."""

from __future__ import annotations

from typing import Any

import pytest

from ina.controller.config import Config, make_config, with_build
from ina.controller.errors import ConfigError

SWITCH = {"mode": "shared", "values": 64}
AGGREGATOR = {"name": "agg1", "grpc_addr": "h:1", "data_host": "10.0.0.9"}


def config(switch: dict[str, Any] | list[dict[str, Any]], *more: dict[str, Any]) -> Config:
    return make_config({"switch": switch, "aggregator": list(more)}, "file")


def test_half_of_the_slots_are_shared_unless_the_file_says_how_many() -> None:
    assert config(SWITCH).switch.slots_shared == 4096
    assert config(SWITCH | {"shared_slots": 512}).switch.slots_shared == 512
    assert config({"values": 64}).switch.slots_shared == 0
    assert config(SWITCH | {"target": "bmv2"}).switch.age_us > config(SWITCH).switch.age_us > 0
    assert config(SWITCH | {"slot_age_us": 5}).switch.age_us == 5


def test_bmv2_has_room_for_sums_that_are_put_out_of_64_values() -> None:
    with pytest.raises(
        ConfigError, match="256 of mode 'shared' on BMv2: its packets grow by at most"
    ):
        config({**SWITCH, "target": "bmv2", "values": 256})


def test_an_aggregator_is_programmed_as_the_switch_that_it_is() -> None:
    read = with_build(config(SWITCH, AGGREGATOR | {"data_port": 3}))
    _, found = read.programmed
    assert (str(found.runs), found.name) == ("shared, 64 values a packet", "agg1")
    assert (found.data_addr, found.data_port) == ("10.0.0.9:17760", 3)
    assert [it.name for it in read.switches] == ["switch"]
    assert not read.is_fabric  # it makes no fabric of a switch that is alone


TWO = [
    {**SWITCH, "name": "s1"},
    {**SWITCH, "name": "s2", "grpc_addr": "x:1", "data_host": "10.0.0.2"},
]


@pytest.mark.parametrize(
    ("switch", "aggregators", "says"),
    [
        ({"shared_slots": 8}, [], "switch.shared_slots: only with mode 'shared', and the switch's"),
        ({"aggregator": True}, [], "switch.aggregator: only with mode 'shared'"),
        (SWITCH | {"shared_slots": 8191}, [], "switch.shared_slots: 8191: leave 2 of 8192"),
        (SWITCH | {"shared_slots": 8192}, [], r"switch.shared_slots: expected `int` <= 8191"),
        (SWITCH | {"mode": "atp"}, [], "switch.mode: 'atp' is none of pool, shared"),
        (
            {"mode": "shared", "target": "tofino", "southbound": "bfrt"},
            [],
            "switch.mode: shared is not written to a tofino yet",
        ),
        (SWITCH, [AGGREGATOR, AGGREGATOR], r"aggregator\[1\].name: agg1 is aggregator\[0\]'s, too"),
        (SWITCH, [AGGREGATOR | {"name": "switch"}], r"aggregator\[0\].name: switch is switch's"),
        (SWITCH, [AGGREGATOR | {"name": "a b"}], r"aggregator\[0\].name: 'a b': want up to 63"),
        (SWITCH, [AGGREGATOR | {"data_host": "x"}], r"\[0\].data_host: 'x' is not an IPv4 address"),
        (SWITCH, [AGGREGATOR | {"data_mac": "x"}], r"\[0\].data_mac: 'x' is not a MAC address"),
        (SWITCH, [AGGREGATOR | {"switch": "s9"}], r"\[0\].switch: no switch is called 's9'"),
        (TWO, [AGGREGATOR], r"aggregator\[0\].switch: which one is it behind\? there are several"),
    ],
)
def test_what_cannot_be_is_refused_by_its_key(
    switch: Any, aggregators: list[dict[str, Any]], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        config(switch, *aggregators)


def test_jobs_cannot_share_by_default_where_no_switch_does() -> None:
    with pytest.raises(ConfigError, match=r"jobs.mode: no switch has mode 'shared'"):
        make_config({"switch": {"values": 64}, "jobs": {"mode": "shared"}}, "file")
