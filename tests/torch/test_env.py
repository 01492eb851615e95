"""The environment variables: defaults, all of them set, and a name that does not exist."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from ina.congestion import Congestion
from ina.host import Wishes
from ina.p4.builds import interface_mtu_bytes
from ina.torch import Options, env
from ina.torch.env import Settings
from ina.torch.errors import SettingError

_PAGE = Path(__file__).parents[2] / "docs" / "pytorch.md"


def test_defaults() -> None:
    assert Settings.from_environ({"PATH": "/bin"}) == Settings()


def test_all_set(tmp_path: Path) -> None:
    environ = {
        "INA_JOB": "mine",
        "INA_JOB_TOKEN": "secret",
        "INA_TENANT": "vision",
        "INA_PRIORITY": "-3",
        "INA_DEADLINE": "2026-11-25T18:00:00+01:00",
        "INA_STEPS": "900",
        "INA_QUEUE_S": "60",
        "INA_ON_SWITCH_LOSS": "fallback",
        "INA_HOST": "10.0.0.1",
        "INA_TRANSPORT": "udp",
        "INA_THREADS": "4",
        "INA_WINDOW": "fixed,packets=9",
        "INA_DSCP": "46",
        "INA_VERIFY": "keyed",
        "LOCAL_WORLD_SIZE": "3",
        "INA_VALUES": "360",
        "INA_MULTICAST": "239.192.4.0/24",
        "INA_LOSS_RATE": "0.25",
        "INA_LOSS_SEED": "7",
        "INA_EMBED": "/run/ina/embed",
        "INA_STATS_DIR": str(tmp_path),
        "INA_LEAVE_TIMEOUT_S": "2.5",
        "INA_SWITCH_RETURN": "0",
    }
    assert Settings.from_environ(environ) == Settings(
        job="mine",
        token="secret",
        tenant="vision",
        priority=-3,
        wishes=Wishes(1795626000.0, 900, 60.0),
        on_switch_loss="fallback",
        returns=False,
        host="10.0.0.1",
        transport="udp",
        threads=4,
        congestion=Congestion("fixed", {"packets": 9}),
        dscp=46,
        verify="keyed",
        local_workers=3,
        values=360,
        multicast="239.192.4.0/24",
        loss_rate=0.25,
        loss_seed=7,
        embed="/run/ina/embed",
        stats_dir=tmp_path,
        leave_timeout_s=2.5,
    )
    assert Settings.from_environ({"INA_CONTROLLER": "host:99"}).controller == "host:99"
    several = {"INA_CONTROLLER": "one:99,10.0.0.2:98"}
    assert Settings.from_environ(several).controller == "one:99,10.0.0.2:98"


@pytest.mark.parametrize(
    ("environ", "values"),
    [
        ({}, 1024),  # all workers are on this host
        ({"INA_HOST": "127.0.0.9", "INA_TRANSPORT": "shm"}, 1024),
        ({"INA_TRANSPORT": "udp"}, 1024),
        ({"INA_HOST": "203.0.113.9"}, 256),  # no address of this host: nothing is known of it
        ({"INA_VALUES": "64"}, 64),
    ],
)
def test_values_a_packet_where_nobody_chose(environ: dict[str, str], values: int) -> None:
    assert Settings.from_environ(environ).packet_values == values


@pytest.mark.parametrize(
    ("mtu_bytes", "values"), [(9000, 360), (1500, 360), (1491, 256), (1000, 64)]
)
def test_hosts_packets_are_as_large_as_their_interface_bears(
    mtu_bytes: int, values: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(env, "interface_mtu_bytes", {"10.0.0.1": mtu_bytes}.__getitem__)
    assert Settings.from_environ({"INA_HOST": "10.0.0.1"}).packet_values == values
    assert Settings.from_environ({"INA_HOST": "10.0.0.1", "INA_VALUES": "64"}).packet_values == 64


def test_the_mtu_of_an_interface() -> None:
    loopback = int(Path("/sys/class/net/lo/mtu").read_text())
    assert interface_mtu_bytes("127.0.0.1") == loopback
    assert interface_mtu_bytes("203.0.113.9") is None


def test_multicast_needs_a_network() -> None:
    assert Settings.from_environ({}).multicast == ""
    assert Settings.from_environ({"INA_MULTICAST": ""}).multicast == ""
    for wrong in ("on", "10.0.0.0/8", "239.192.0.0/30"):
        with pytest.raises(SettingError, match=f"INA_MULTICAST={wrong}: "):
            Settings.from_environ({"INA_MULTICAST": wrong})
    with pytest.raises(SettingError, match="INA_MULTICAST is for the embedded switch"):
        Settings.from_environ({"INA_MULTICAST": "239.192.0.0/24", "INA_CONTROLLER": "host:99"})


def test_lease_of_the_embedded_controller() -> None:
    assert Settings.from_environ({"INA_LEASE_S": "40"}).lease_s == 40.0
    assert Options(lease_s=50.0).over(Settings(lease_s=40.0)).lease_s == 50.0
    for wrong in ("0.5", "4000", "nan"):
        with pytest.raises(SettingError, match=f"INA_LEASE_S={wrong}: want 1 to 3600 seconds"):
            Settings.from_environ({"INA_LEASE_S": wrong})
    with pytest.raises(SettingError, match=r"lease_s=0\.1: want"):
        Options(lease_s=0.1)
    with pytest.raises(SettingError, match="INA_LEASE_S is for the embedded switch"):
        Settings.from_environ({"INA_LEASE_S": "40", "INA_CONTROLLER": "host:99"})
    with pytest.raises(SettingError, match="INA_CONTROLLER=host:99 names a running one"):
        Options(lease_s=40.0).over(Settings(controller="host:99"))


def test_a_window_is_there_or_it_is_refused_with_its_variable() -> None:
    own = "tests.worlds.virtual.windows:Kept,packets=3"
    assert str(Settings.from_environ({"INA_WINDOW": own}).congestion) == (
        "tests.worlds.virtual.windows:Kept (packets 3)"
    )
    for wrong, complaint in (
        ("cubic", "no congestion algorithm is named 'cubic'"),
        ("fixed,packets", "congestion option 'packets': want NAME=NUMBER"),
        ("no_such_module:W", "there is no module 'no_such_module'"),
        ("tests.worlds.virtual.windows:Kept,gain=1", "unexpected keyword argument 'gain'"),
    ):
        with pytest.raises(SettingError, match=f"INA_WINDOW={wrong}: .*{complaint}"):
            Settings.from_environ({"INA_WINDOW": wrong})
    over = Options(congestion=Congestion("fixed")).over(Settings(congestion=Congestion()))
    assert over.congestion == Congestion("fixed")


def test_options_go_before_the_environment() -> None:
    settings = Settings.from_environ({"INA_TENANT": "vision", "INA_PRIORITY": "4"})
    over = Options(on_switch_loss="fallback", priority=0, host_node=False).over(settings)
    assert over == Settings(tenant="vision", priority=0, on_switch_loss="fallback", host_node=False)
    assert not Options(returns=False).over(Settings()).returns
    with pytest.raises(SettingError, match="INA_SWITCH_RETURN=no: want 0 or 1"):
        Settings.from_environ({"INA_SWITCH_RETURN": "no"})
    with pytest.raises(SettingError, match="on_switch_loss=panic: want error or fallback"):
        Options(on_switch_loss="panic")


def test_unknown_name_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert Settings.from_environ({"INA_CONTROLER": "host:99"}) == Settings()
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert "INA_CONTROLER is not known" in record.getMessage()


def test_the_page_and_the_docstring_name_the_same_variables() -> None:
    assert env.__doc__ is not None
    rows = [line for line in _PAGE.read_text().splitlines() if line.startswith("| `INA_")]
    on_page = {name for row in rows for name in re.findall(r"`(INA_\w+)`", row.split("|")[1])}
    in_docstring = set(re.findall(r"^(INA_\w+)", env.__doc__, re.MULTILINE))
    assert on_page == in_docstring == env.KNOWN
