"""What ``ina job plan`` asks, of a file, of options, and of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from ina.cli import main
from ina.rpc import controller_pb2 as pb2
from tests.worlds.fakes.operator import FakeController

Capture = pytest.CaptureFixture[str]
FILE = """
name = "train"
hosts = ["10.0.1.11", "10.0.2.11"]
bytes = "100M"
compute_s = 0.05
overlap_s = 0.02
link_gbit = 8
slots = 64
priority = 1
steps = 9
placement = "nearest"
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    for name in ("INA_TENANT", "INA_PRIORITY", "INA_DEADLINE", "INA_STEPS"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.toml").write_text(FILE)
    return str(tmp_path / "train.toml")


def asked(fake: FakeController, address: str, *words: str) -> pb2.PlanJobRequest:
    assert main.run(["job", "plan", *words, "--controller", address]) == 0
    return fake.planned.pop()


def test_options_come_before_the_file_and_the_rest_is_the_file_s(
    fake: FakeController, address: str, file: str
) -> None:
    alone = asked(fake, address, file)
    words = ["--slots", "128", "--priority", "5", "--steps", "7", "--tenant", "vision"]
    both = asked(fake, address, file, *words, "--deadline", "2033-05-18T03:33:20+00:00")
    assert (both.slots, both.priority, both.steps, both.tenant) == (128, 5, 7, "vision")
    assert both.deadline_unix_s == 2_000_000_000
    for name in ("slots", "priority", "steps", "tenant", "deadline_unix_s"):
        both.ClearField(name)
        alone.ClearField(name)
    assert both == alone
    assert (alone.name, alone.placement, len(alone.hosts)) == ("train", "nearest", 2)
    assert (alone.step.bytes, alone.step.overlap_s, alone.step.line_bytes_per_s) == (1e8, 0.02, 1e9)


def test_zero_is_an_option_too(fake: FakeController, address: str, file: str) -> None:
    assert asked(fake, address, file, "--priority", "0", "--slots", "0").priority == 0


def test_its_steps_are_said_by_the_option_alone(
    fake: FakeController, address: str, file: str
) -> None:
    like = asked(fake, address, file, "--like", "other")
    assert (like.like, like.HasField("step")) == ("other", False)
    step = asked(fake, address, file, "--bytes", "1M", "--round-trip", "1e-4").step
    assert (step.bytes, step.compute_s, step.line_bytes_per_s) == (1e6, 0, 0)
    assert step.round_trip_s == pytest.approx(1e-4)


def test_whose_it_is(
    fake: FakeController, address: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The option before the file, the file before the environment."""
    monkeypatch.setenv("INA_TENANT", "speech")
    assert asked(fake, address, file).tenant == "speech"
    assert asked(fake, address, "--workers", "2").tenant == "speech"
    monkeypatch.setenv("INA_PRIORITY", "4")
    monkeypatch.setenv("INA_STEPS", "70")
    assert asked(fake, address, file).priority == 1
    assert asked(fake, address, "--workers", "2").priority == 4
    assert asked(fake, address, "--workers", "2", "--steps", "8").steps == 8
    Path(file).write_text(FILE + 'tenant = "vision"\n')
    assert asked(fake, address, file).tenant == "vision"
    assert asked(fake, address, file, "--tenant", "other").tenant == "other"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["FILE", "--workers", "3"], "--workers 3: the file has 2 hosts, one for each rank"),
        (["FILE", "--deadline", "soon"], "--deadline 'soon' is neither seconds"),
        (["FILE", "--bytes", "much"], "--bytes much: want bytes"),
        (
            ["FILE", "--bytes", "1M", "--like", "x"],
            "--like and --bytes: one of them says its steps",
        ),
        (["--workers", "2", "--compute", "1"], "--compute: of which step? want --bytes, too"),
        (["--workers", "2", "--like", "x", "--link", "9"], "--link: of which step?"),
        ([], "want hosts in a FILE, or workers above 0"),
    ],
)
def test_what_contradicts_itself_is_said(
    fake: FakeController, address: str, file: str, capsys: Capture, words: list[str], message: str
) -> None:
    words = [file if word == "FILE" else word for word in words]
    assert main.run(["job", "plan", *words, "--controller", address]) == 2
    assert message in capsys.readouterr().err
    assert not fake.planned


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('deadline = "soon"', "deadline 'soon' is neither seconds"),
        ('like = "x"', "like and FILE: bytes: one of them"),
        ("workers = 3", "workers 3: the file has 2 hosts"),
    ],
)
def test_what_is_wrong_in_the_file_is_said_of_the_file(
    address: str, file: str, capsys: Capture, line: str, message: str
) -> None:
    Path(file).write_text(FILE + line + "\n")
    assert main.run(["job", "plan", file, "--controller", address]) == 2
    assert f"{file}: {message.replace('FILE', file)}" in capsys.readouterr().err
