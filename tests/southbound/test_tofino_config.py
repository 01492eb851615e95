"""The Tofino's part of the TOML file: what is wrong is named by file and key."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from ina.cli.main import run
from ina.controller.config import DEFAULT_BFRT, load_config
from ina.controller.config.tofino import pipe_of
from ina.controller.errors import ConfigError

WHOLE = """
[switch]
target = "tofino"
southbound = "bfrt"
program = "ina_pool_64"
data_port = "2/0"
[switch.pipes]
count = 2
[[switch.port]]
port = "1/0"
speed = "100G"
fec = "rs"
autoneg = "off"
[[switch.port]]
port = "2/0"
speed = "25G"
lanes = 1
mtu = 9000
[[switch.port]]
port = "3/0"
speed = "100G"
loopback = true
[[switch.mirror]]
session = 5
port = 64
direction = "egress"
max_bytes = 128
[[host]]
address = "10.0.0.1"
port = "1/0"
"""
TOFINO = '[switch]\ntarget = "tofino"\n'
BFRT = TOFINO + 'southbound = "bfrt"\n'
FILES = 'p4info = "p4info.txt"\npipeline = "pipeline.bin"\n'


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "controller.toml"
    path.write_text(text)
    return path


def test_every_key_is_read(tmp_path: Path) -> None:
    switch = load_config(write(tmp_path, WHOLE)).switch
    assert (switch.values, switch.grpc_addr, switch.device_id) == (64, DEFAULT_BFRT, 0)
    assert switch.is_tofino
    assert [port.port for port in switch.port] == ["1/0", "2/0", "3/0"]
    assert (switch.port[1].lanes, switch.port[1].mtu, switch.port[2].loopback) == (1, 9000, True)
    assert (switch.mirror[0].session, switch.mirror[0].direction) == (5, "egress")
    config = load_config(write(tmp_path, WHOLE))
    endpoints = config.endpoints(config.switch)
    assert endpoints == {IPv4Address("10.0.0.1"): ("1/0", None)}


def test_a_target_has_its_own_defaults(tmp_path: Path) -> None:
    two = load_config(write(tmp_path, BFRT.replace("tofino", "tofino2"))).switch
    assert (two.values, two.window_limit) == (64, 0)
    given = load_config(write(tmp_path, BFRT + 'grpc_addr = "10.0.0.7:1"\ndevice_id = 2')).switch
    assert (given.grpc_addr, given.device_id) == ("10.0.0.7:1", 2)
    stratum = load_config(write(tmp_path, TOFINO + FILES)).switch
    assert (stratum.values, stratum.device_id, stratum.grpc_addr) == (64, 1, "127.0.0.1:9559")


def test_pipes(tmp_path: Path) -> None:
    assert [pipe_of(port) for port in (0, 127, 128, 300, 511)] == [0, 0, 1, 2, 3]
    # Tofino 2 does not recirculate: 68 is a port like any other.
    load_config(write(tmp_path, BFRT.replace("tofino", "tofino2") + PORT.format(68)))


PORT = "[[switch.port]]\nport = {}\nspeed = '100G'\n"
HOST = "[[host]]\naddress = '10.0.0.1'\nport = {}\n"
MIRROR = "[[switch.mirror]]\nsession = 1\nport = {}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[switch]\ntarget = 'tofino3'", r"switch.target: 'tofino3' is none of soft, bmv2, tofino"),
        ("[switch]\nsouthbound = 'bfrt'", r"switch.southbound: bfrt is for tofino and tofino2, no"),
        ("[switch]\nprogram = 'x'", r"switch.program: only a Tofino has it, switch.target is 'sof"),
        (PORT.format(1), r"switch.port: only a Tofino has it"),
        ("[switch]\ndevice_id = 0", r"switch.device_id: 0: P4Runtime's devices begin at 1"),
        (HOST.format("'1/0'"), r"host\[0\].port: '1/0': only a Tofino behind BFRuntime has names"),
        (HOST.format(0), r"host\[0\].port: 0 is not 1 to 510"),
        ("[switch]\ndata_port = 511", r"switch.data_port: 511 is not 1 to 510"),
        (TOFINO + "values = 256\n" + FILES, r"switch.values: 256 is not 64"),
        (BFRT.replace("tofino", "tofino2") + "values = 128", r"switch.values: 128 is not 64"),
        (TOFINO, r"switch.p4info: P4Runtime sets the program: name its P4Info and its device file"),
        (TOFINO + "p4info = 'x'", r"switch.pipeline: P4Runtime sets the program"),
        (TOFINO + FILES + PORT.format(1), r"switch.port: P4Runtime cannot set it; southbound = "),
        (TOFINO + FILES + HOST.format("'1/0'"), r"host\[0\].port: '1/0': P4Runtime has no names"),
        (BFRT + FILES, r"switch.p4info: the SDE loads the program"),
        (BFRT + "program = 'ina-pool'", r"switch.program: 'ina-pool' is not a program's name"),
        (BFRT + "[switch_tls]\nca = 'x'", r"switch_tls: the SDE's BFRuntime client has no TLS"),
        (BFRT + "[switch.pipes]\ncount = 3", r"switch.pipes.count: 3 is none of"),
        (BFRT + "[switch.pipes]\npipe = 3", r"switch.pipes.pipe: unknown key"),
        (BFRT + PORT.format("'1'"), r"switch.port\[0\].port: '1' is neither a device port nor"),
        (BFRT + PORT.format("'1/8'"), r"switch.port\[0\].port: '1/8' is neither"),
        (
            BFRT + PORT.format(600),
            r"switch.port\[0\].port: 600 is in pipe 4: this chip has",
        ),
        (
            BFRT + "[switch.pipes]\ncount = 2\n" + PORT.format(300),
            r"switch.port\[0\].port: 300 is in pipe 2: this chip has pipes 0 to 1, ports 0 to 255",
        ),
        (
            BFRT + PORT.format(196),
            r"switch.port\[0\].port: 196 is the recirculation port of pi",
        ),
        (BFRT + PORT.format(1) * 2, r"switch.port\[1\].port: 1 is listed twice"),
        (
            BFRT + "[[switch.port]]\nport = 1",
            r"switch.port\[0\].speed: missing",
        ),
        (
            BFRT + PORT.format(1).replace("100G", "400G"),
            r"switch.port\[0\].speed: 400G: a tofino has 10G, 25G, 40G, 50G, 100G",
        ),
        (
            BFRT + PORT.format(1) + "fec = 'fc'",
            r"switch.port\[0\].fec: fc at 100G: that can have",
        ),
        (
            BFRT + PORT.format(1) + "lanes = 8",
            r"switch.port\[0\].lanes: 8: a connector of Tofino",
        ),
        (BFRT + PORT.format(1) + "lanes = 3", r"switch.port\[0\].lanes: 3 is none of"),
        (BFRT + PORT.format(1) + "mtu = 100", r"switch.port\[0\].mtu: expected `int` >= 1500"),
        (BFRT + PORT.format(1) + "duplex = 1", r"switch.port\[0\].duplex: unknown key"),
        (BFRT + MIRROR.format(1) * 2, r"switch.mirror\[1\].session: 1 is listed twice"),
        (BFRT + MIRROR.format("'x'"), r"switch.mirror\[0\].port: 'x' is neither"),
        (BFRT + HOST.format(68), r"host\[0\].port: 68 is the recirculation port of pipe 0"),
        (
            BFRT + PORT.format(1) + "loopback = true\n" + HOST.format(1),
            r"host\[0\].port: 1 is a loopback port: what a host behind it sends is not seen",
        ),
        (
            BFRT + PORT.format(1) + HOST.format(2),
            r"host\[0\].port: 2 is not set up: no \[\[switch.port\]\] names it",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError, match=rf"controller.toml: {message}") as caught:
        load_config(path)
    assert "\n" not in str(caught.value)


def test_the_command_checks_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["controller", "check", str(write(tmp_path, WHOLE))]) == 0
    capsys.readouterr()
    path = write(tmp_path, TOFINO + FILES.replace("p4info.txt", str(tmp_path / "none")))
    assert run(["controller", "check", str(path)]) == 2
    assert f"switch.p4info: {tmp_path / 'none'}: no such file" in capsys.readouterr().err


def test_an_embedded_switch_is_no_tofino(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path, BFRT)
    assert run(["controller", "run", str(path), "--embedded-switch"]) == 2
    assert "a soft switch is no tofino" in capsys.readouterr().err
