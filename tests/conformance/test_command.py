"""``ina test`` as a user runs it, and a device that is only an address and a port map."""

from __future__ import annotations

import contextlib
import json
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from ina.cli.main import run
from ina.netns import End, NetnsError, add_pairs, ip_batch
from ina.switch.ports import AfPacketPort
from ina.switch.server import SoftSwitch
from ina.testing.bmv2_device import _stop
from ina.testing.case import run_case
from ina.testing.case_file import save_case
from ina.testing.cases import all_cases
from ina.testing.control_plane import P4RuntimeClient
from ina.testing.differential import as_reference_has_it
from ina.testing.errors import DeviceError
from ina.testing.links import cannot_link
from ina.testing.model_device import ModelDevice
from ina.testing.p4runtime_device import P4RuntimeDevice
from ina.testing.wire import SocketWire


def test_green_cases(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--device", "model", "--values", "64", "--only", "repeat/*", "--json"]
    assert run(["test", "conformance", *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    wanted = [case for case in all_cases(64) if case.name.startswith("repeat/")]
    assert document == {"device": "model", "green": len(wanted), "failed": [], "skipped": []}


def test_diff_and_its_tally(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    arguments = ["--device", "soft", "--packets", "600", "--values", "64", "--out", str(tmp_path)]
    assert run(["test", "diff", *arguments, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["builds"][0]["packets"] == 600
    assert document["differences"] == document["files"] == []
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A right case in right.json, and one with a wrong result in wrong.json."""
    folder = tmp_path_factory.mktemp("cases")
    case = next(case for case in all_cases(64) if case.name == "completion/alone")
    with ModelDevice() as model:
        told = as_reference_has_it(case, model)
    save_case(told, folder / "right.json")
    text = (folder / "right.json").read_text()
    result = told.steps[-1].out[0][1].hex()  # type: ignore[union-attr]
    assert text.count(result) == 1
    (folder / "wrong.json").write_text(text.replace(result, result[:-2] + "ee"))
    return folder


def test_replay(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["test", "replay", str(folder / "right.json"), "--device", "soft"]) == 0
    assert "1 cases green" in capsys.readouterr().out
    assert run(["test", "replay", str(folder / "wrong.json"), "--device", "soft"]) == 1
    assert "not expected RESULT" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["conformance", "--device", "soft2"], "expected model, soft"),
        (["conformance", "--device", "a:b"], "HOST:PORT"),
        (["conformance", "--device", "127.0.0.1:9,x"], "HOST:PORT"),
        (["conformance", "--device", "127.0.0.1:9"], "port map"),
        (["conformance", "--device", "127.0.0.1:9", "--port-map", "veth0"], "PORT@INTERFACE"),
        (["conformance", "--device", "127.0.0.1:9", "--port-map", "1@a,1@b"], "twice"),
        (["conformance", "--device", "model", "--port-map", "1@a"], "no port map"),
        (["conformance", "--only", "nothing/*"], "no case"),
        (["conformance", "--values", "65"], "65: there are builds for 64, 256, 360 and 1024"),
        (["diff", "--values", "1"], "1: there are builds for 64, 256, 360 and 1024"),
        (["replay", "/nowhere/case.json"], "/nowhere/case.json"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["test", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.fixture
def cables() -> Iterator[dict[int, tuple[str, str]]]:
    """Two cables in this namespace: the switch's end and ours, by port."""
    if why := cannot_link():
        pytest.skip(why)
    tag = uuid.uuid4().hex[:6]
    ends = {port: (f"a{tag}s{port}", f"a{tag}h{port}") for port in (1, 2)}
    try:
        add_pairs((End(None, ours), End(None, theirs)) for ours, theirs in ends.values())
        quiet = "mtu 9500 addrgenmode none arp off multicast off up"
        ip_batch(None, [f"link set {end} {quiet}" for pair in ends.values() for end in pair])
        yield ends
    finally:
        with contextlib.suppress(NetnsError):
            ip_batch(None, [f"link del {ours}" for ours, _ in ends.values()], force=True)


def test_any_p4runtime_device(
    cables: dict[int, tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    ports = [AfPacketPort(port, ours) for port, (ours, _) in cables.items()]
    port_map = ",".join(f"{port}@{theirs}" for port, (_, theirs) in cables.items())
    with SoftSwitch(ports, device_id=7) as switch:
        device = ["--device", f"{switch.grpc_addr},7", "--port-map", port_map]
        only = ["--only", "takeover/*", "--values", "64", "--json"]
        assert run(["test", "conformance", *device, *only]) == 0
        document = json.loads(capsys.readouterr().out)
        assert document["failed"] == document["skipped"] == []
        assert document["green"] == 9
        few_ports = ["--only", "multicast/3-ports", "--values", "64", "--json"]
        assert run(["test", "conformance", *device, *few_ports]) == 0
        (skipped,) = json.loads(capsys.readouterr().out)["skipped"]
        assert "no port 3" in skipped["why"]


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(DeviceError, match=r"127\.0\.0\.1:9 device 1: no answer within 0\.5 s"):
        P4RuntimeClient("127.0.0.1:9", 1, connect_s=0.5)


def test_cables_on_the_wrong_ports_are_said(cables: dict[int, tuple[str, str]]) -> None:
    crossed = {1: cables[2][1], 2: cables[1][1]}
    case = next(case for case in all_cases(64) if case.name == "takeover/complete-round")
    with (
        SoftSwitch([AfPacketPort(port, ours) for port, (ours, _) in cables.items()]) as switch,
        SocketWire(crossed) as wire,
        P4RuntimeDevice("crossed", switch.grpc_addr, 1, wire, patience_s=1.0) as device,
    ):
        verdict = run_case(case, device)
    assert "not wired as the port map says" in verdict.differences[0]


class SlowToEnd:
    """A process that is still there whenever somebody has waited for a limited time."""

    def terminate(self) -> None:
        """Is not enough."""

    kill = terminate

    def wait(self, timeout_s: float | None = None) -> None:
        if timeout_s is not None:
            raise subprocess.TimeoutExpired("simple_switch_grpc", timeout_s)


def test_bmv2_may_take_long_to_end() -> None:
    """After the last case: what the cases have shown must still be said."""
    _stop(cast("subprocess.Popen[bytes]", SlowToEnd()))
