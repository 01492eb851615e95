"""``ina switch show``, ``remove-foreign`` and ``ina controller status``."""

from __future__ import annotations

import json

import grpc
import pytest

from ina.cli import main
from tests.worlds.fakes.operator import FakeController, serving

Capture = pytest.CaptureFixture[str]


def test_show_groups_by_job_and_marks_what_is_foreign(address: str, capsys: Capture) -> None:
    assert main.run(["switch", "show", "--controller", address]) == 0
    shown = capsys.readouterr().out
    order = [
        "slots 512 of 8192 in use",
        "job train: running, number 4, epoch 70001, slots 512..1023",
        "admit_job(epoch=70001)",
        "job_results",
        "entries of no job",
        "forward(port=2)",
        "foreign entries",
        "admit_job(epoch=5)",
        "counters of no job",
        "unknown_member",
    ]
    places = [shown.index(part) for part in order]
    assert places == sorted(places)


def test_show_json_and_its_alias_say_the_same(address: str, capsys: Capture) -> None:
    said = []
    for noun in ("switch", "controller"):
        assert main.run([noun, "show", "--json", "--controller", address]) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0] == said[1]
    assert [entry["job"] for entry in said[0]["entries"]] == ["train", "", ""]
    assert [entry["foreign"] for entry in said[0]["entries"]] == [False, False, True]
    assert said[0]["jobs"][0]["first_slot"] == 512


def test_show_of_one_job(address: str, capsys: Capture) -> None:
    assert main.run(["switch", "show", "--job", "train", "--json", "--controller", address]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [entry["match"] for entry in document["entries"]] == ["job=4"]
    assert [counter["name"] for counter in document["counters"]] == ["job_results"]
    assert main.run(["switch", "show", "--job", "none", "--controller", address]) == 0
    assert "no job is called none" in capsys.readouterr().out


def test_remove_foreign_says_what_it_removed(address: str, capsys: Capture) -> None:
    assert main.run(["switch", "remove-foreign", "--controller", address]) == 0
    shown = capsys.readouterr().out
    assert "removed 1 foreign:" in shown
    assert "admit_job(epoch=5)" in shown


def test_an_option_of_running_a_switch_is_refused_before_a_command(capsys: Capture) -> None:
    assert main.run(["switch", "--device-id", "2", "show"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --device-id belongs behind the command show")


@pytest.mark.parametrize("option", ["--pin=a", "--xdp-mode=native"])
def test_options_of_device_xdp_are_refused_of_another(option: str, capsys: Capture) -> None:
    assert main.run(["switch", option]) == 2
    name = option.partition("=")[0]
    assert capsys.readouterr().err == f"error: {name} belongs to --device xdp\n"


def test_status_shows_every_controller(fake: FakeController, address: str, capsys: Capture) -> None:
    standby = FakeController()
    standby.refuse = (grpc.StatusCode.UNAVAILABLE, "standby")
    with serving(standby) as other:
        command = ["controller", "status", "--controller", f"{other},{address},127.0.0.1:1"]
        assert main.run(command) == 0
        lines = capsys.readouterr().out.splitlines()
        assert f"controller {other}: standby, election id 2" in lines[0]
        assert f"controller {address}: primary" in lines[1]
        assert "switch 10.0.0.9:9559 connected; store /var/lib/ina/c.db" in lines[1]
        assert lines[2].startswith("controller 127.0.0.1:1: ")
        assert main.run([*command, "--json"]) == 0
        rows = json.loads(capsys.readouterr().out)
        assert [row.get("role") for row in rows] == ["standby", "primary", None]
        assert main.run(["controller", "status", "--controller", other]) == 1


def test_status_of_a_controller_is_one_line_however_long(
    fake: FakeController, address: str, capsys: Capture
) -> None:
    fake.switch_state = "unreachable: " + "no answer, " * 40
    assert main.run(["controller", "status", "--controller", address]) == 0
    assert fake.switch_state in capsys.readouterr().out


def test_status_of_nobody_is_an_error(capsys: Capture) -> None:
    assert main.run(["controller", "status", "--controller", "127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.startswith("error: controller 127.0.0.1:1: ")
