"""The TOML file: what is wrong is named by file and key."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from ina.congestion import Congestion
from ina.controller.config import Config, TenantConfig, load_config, make_config
from ina.controller.errors import ConfigError

WHOLE = """
listen = "0.0.0.0:17700"
[switch]
grpc_addr = "10.0.0.9:9559"
device_id = 3
election_id = 7
values = 64
data_host = "10.0.0.9"
data_udp_port = 17760
data_port = 4
[jobs]
sizing = "asked"
slots = 128
count = 4
preempt = true
lease_s = 4.5
unjoined_s = 5
[congestion]
algorithm = "adaptive"
shrink = 0.5
smallest = 16
[tenants.vision]
slots = 1024
jobs = 2
workers = 16
max_priority = 3
[[host]]
address = "10.0.0.1"
port = 2
mac = "02:00:00:00:00:01"
[[host]]
address = "10.0.0.2"
port = 3
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "controller.toml"
    path.write_text(text)
    return path


def test_every_key_is_read(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, WHOLE))
    assert (config.switch.device_id, config.switch.values, config.jobs.slots) == (3, 64, 128)
    assert (config.jobs.sizing, config.jobs.preempt, config.jobs.lease_s) == ("asked", True, 4.5)
    assert str(Congestion.from_table(config.congestion)) == "adaptive (shrink 0.5, smallest 16)"
    assert config.tenants == {"vision": TenantConfig(1024, 2, 16, 3)}
    assert config.endpoints(config.switch) == {
        IPv4Address("10.0.0.1"): (2, 0x0200_0000_0001),
        IPv4Address("10.0.0.2"): (3, None),
    }


TWO = """[[switch]]
name = 'a'
grpc_addr = 'a:1'
data_host = '10.0.0.1'
[[switch]]
name = 'b'
grpc_addr = 'b:2'
data_host = '10.0.0.2'
"""


def test_several_switches_by_name(tmp_path: Path) -> None:
    hosts = "[[host]]\naddress='10.0.0.9'\nswitch='b'\nport=7\n"
    config = load_config(write(tmp_path, TWO + "target = 'bmv2'\n" + hosts))
    a, b = config.switches
    assert [(it.name, it.grpc_addr, it.window_limit) for it in (a, b)] == [
        ("a", "a:1", 0),
        ("b", "b:2", 16),
    ]
    assert config.endpoints(a) == {}
    assert config.endpoints(b) == {IPv4Address("10.0.0.9"): (7, None)}
    assert make_config(config.document(), "again") == config


def test_a_switch_that_is_alone_is_a_table_or_a_list_of_one(tmp_path: Path) -> None:
    table = load_config(write(tmp_path, "[switch]\nvalues = 64"))
    assert load_config(write(tmp_path, "[[switch]]\nvalues = 64")) == table
    assert (table.switch.name, table.document()["switch"]["values"]) == ("switch", 64)


def test_an_empty_file_is_the_defaults(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "")) == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour = 1", r"colour: unknown key"),
        ("[switch]\nvalue = 64", r"switch.value: unknown key"),
        ("[congestion]\nalgorithm = 'cubic'", r"congestion: no .* is named 'cubic'; there are "),
        (
            "[congestion]\nshrink = 2",
            r"congestion: the option 'shrink' of 'ina' must be 0.1",
        ),
        ("[congestion]\nspeed = 2", r"congestion: .* 'ina' has no option 'speed'"),
        ("[[host]]\naddress='10.0.0.1'\nport=1\nspeed=1", r"host\[0\].speed: unknown key"),
        ("[switch]\ndevice_id = 'one'", r"switch.device_id: expected `int`, got `str`"),
        ("[switch]\nvalues = 65", r"switch.values: 65 is not 64, 256, 360 or 1024"),
        ("[switch]\ngrpc_addr = 'here'", r"switch.grpc_addr: 'here' is not host:port"),
        ("[switch]\ndata_host = 'here'", r"switch.data_host: 'here' is not an IPv4 address"),
        ("listen = '1.2.3.4:99999'", r"listen: '1.2.3.4:99999' is not host:port"),
        ("[jobs]\nslots = 3", r"jobs.slots: expected `int` that's a multiple of 2"),
        ("[[host]]\nport=1", r"host\[0\].address: missing"),
        ("[[host]]\naddress='x'\nport=1", r"host\[0\].address: 'x' is not an IPv4 address"),
        ("[[host]]\naddress='10.0.0.1'\nport=1\nmac='z'", r"host\[0\].mac: 'z' is not"),
        (
            "[[host]]\naddress='10.0.0.1'\nport=1\n[[host]]\naddress='10.0.0.1'\nport=2",
            r"host\[1\].address: 10.0.0.1 is listed twice",
        ),
        ("listen = \n", r"not TOML: .*line 1"),
        ("metrics = ':9'", r"metrics: ':9' is not host:port"),
        ("[jobs]\nsizing = 'fair'", r"jobs.sizing: 'fair' is none of fixed, equal, asked"),
        ("[jobs]\nlease_s = 0.5", r"jobs.lease_s: expected `float` >= 1"),
        ("[tenants.a]\n[tenants.vision]\nslot = 1", r"tenants.vision.slot: unknown key"),
        ("[tenants.a]\ndscp = 64", r"tenants.a.dscp: expected `int` <= 63"),
        ("[tenants.a]\njobs = -1", r"tenants.a.jobs: expected `int` >= 0"),
        ("[tenants.'']", r"tenants: '' is not a name"),
        ("[tls]\ncert = 'c.pem'", r"tls: cert and key go together"),
        ("[tls]\nca = 'ca.pem'", r"tls.ca: without cert and key"),
        ("[switch]\nmulticast = 'all'", r"switch.multicast: 'all' is not an IPv4 network: "),
        ("[switch]\nmulticast = 'ff02::/16'", r"switch.multicast: 'ff02::/16' is not an IPv4"),
        ("[switch]\nmulticast = '239.192.0.1/24'", r"switch.multicast: .* has host bits set"),
        ("[switch]\nmulticast = '10.0.0.0/24'", r"switch.multicast: .* not within 224.0.0.0/4"),
        ("[switch]\nmulticast = '0.0.0.0/0'", r"switch.multicast: .* not within 224.0.0.0/4"),
        ("[switch]\nmulticast = '224.0.0.0/24'", r"switch.multicast: .* for routing protocols"),
        ("[switch]\nmulticast = '224.0.0.0/8'", r"switch.multicast: .* for routing protocols"),
        ("[switch]\nmulticast = '239.1.1.0/25'", r"switch.multicast: .* has 128 addresses"),
        ("[switch]\nmulticast = 1", r"switch.multicast: expected `str`, got `int`"),
        ("[switch_tls]\nkey = 'k.pem'", r"switch_tls: cert and key go together"),
        ("[switch]\nname = 'a b'", r"switch.name: 'a b': want up to 63 letters, digits"),
        ("switch = []", r"switch: there is none"),
        ("switch = [1]", r"switch\[0\]: expected `object`, got `int`"),
        (f"{TWO}values = 65", r"switch\[1\].values: 65 is not 64, 256, 360 or 1024"),
        (f"{TWO}value = 64", r"switch\[1\].value: unknown key"),
        (f"{TWO}target = 'tofino'\np4info = 'x'", r"switch\[1\].pipeline: P4Runtime sets"),
        (TWO.replace("'b'", "'a'"), r"switch\[1\].name: a is switch\[0\]'s, too"),
        (TWO.replace("b:2", "a:1"), r"switch\[1\].grpc_addr: a:1 device 1 is switch\[0\]'s, too"),
        (TWO.replace(".2'", ".1'"), r"switch\[1\].data_host: 10.0.0.1:17760 is switch\[0\]'s, too"),
        (f"{TWO}[[host]]\naddress='10.0.0.9'\nport=1", r"host\[0\].switch: which one\?"),
        (
            f"{TWO}[[host]]\naddress='10.0.0.9'\nport=1\nswitch='c'",
            r"host\[0\].switch: no switch is called 'c'",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=rf"controller.toml: {message}") as caught:
        load_config(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("network", ["", "239.192.0.0/24", "224.0.1.0/24", "239.0.0.0/8"])
def test_networks_for_results(tmp_path: Path, network: str) -> None:
    text = f"[switch]\nmulticast = '{network}'"
    assert load_config(write(tmp_path, text)).switch.multicast == network


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: No such file"):
        load_config(tmp_path / "none.toml")


@pytest.mark.parametrize(
    ("text", "limit"),
    [("", 0), ('target = "bmv2"', 16), ('target = "bmv2"\nmax_window = 32', 32)],
)
def test_the_target_decides_the_window_unless_one_is_given(
    text: str, limit: int, tmp_path: Path
) -> None:
    file = tmp_path / "controller.toml"
    file.write_text(f"[switch]\n{text}\n")
    assert load_config(file).switch.window_limit == limit
