"""Algorithms, weights and caps of windows in the controller's file, and whose counts for a job."""

from __future__ import annotations

from typing import Any

import pytest

from ina.controller.config import Config, make_config
from ina.controller.config.reload import changes
from ina.controller.errors import ConfigError
from ina.controller.job import Job, JobSpec
from ina.controller.windows.caps import CAPS, caps_for
from ina.controller.windows.job_windows import Rules

FILE: dict[str, Any] = {
    "congestion": {"algorithm": "fixed", "packets": 100},
    "tenants": {
        "default": {},
        "vision": {"weight": 3.0, "congestion": {"algorithm": "fixed", "packets": 50}},
        "speech": {"weight": 2},
    },
    "job": [
        {"name": "train-*", "congestion": {"algorithm": "adaptive", "shrink": 0.5}},
        {"name": "train-big", "weight": 9},  # never: the one before fits, too
        {"name": "probe-?", "weight": 0.5},
    ],
    "windows": {"caps": "max-min", "slack": 3},
}


@pytest.mark.parametrize(
    ("name", "tenant", "congestion", "weight"),
    [
        ("other", "default", "fixed (packets 100)", 1.0),
        ("other", "nobody", "fixed (packets 100)", 1.0),
        ("other", "speech", "fixed (packets 100)", 2.0),
        ("other", "vision", "fixed (packets 50)", 3.0),
        ("train-big", "vision", "adaptive (shrink 0.5)", 3.0),
        ("train-big", "default", "adaptive (shrink 0.5)", 1.0),
        ("probe-1", "vision", "fixed (packets 50)", 0.5),
        ("probe-12", "vision", "fixed (packets 50)", 3.0),
    ],
)
def test_a_jobs_own_rule_comes_before_its_tenants_and_that_before_alls(
    name: str, tenant: str, congestion: str, weight: float
) -> None:
    rules = Rules(make_config(FILE, "file"))
    job = Job(JobSpec(name, 2, tenant=tenant), 1, 0.0)
    assert str(rules.congestion(job)) == congestion
    assert rules.weight(job) == weight


def test_nothing_is_capped_unless_it_is_asked_for() -> None:
    assert Config().windows.caps == "none"
    assert caps_for(make_config(FILE, "file").windows).name == "max-min"
    assert all(CAPS[name].name == name for name in CAPS)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        (
            {"tenants": {"vision": {"congestion": {"algorithm": "vegas"}}}},
            "tenants.vision.congestion: no congestion algorithm is named 'vegas'",
        ),
        (
            {"tenants": {"vision": {"congestion": {"shrink": 2}}}},
            "tenants.vision.congestion: ",
        ),
        ({"tenants": {"vision": {"weight": 0}}}, "tenants.vision.weight: "),
        ({"job": [{"name": "a", "congestion": {"packets": 3}}]}, "job[0].congestion: "),
        ({"job": [{"name": "a"}, {"name": "a"}]}, "job[1].name: 'a' is job[0]'s, too"),
        ({"job": [{"name": ""}]}, "job[0].name: empty"),
        ({"job": [{"weight": 2}]}, "job[0].name: missing"),
        ({"windows": {"caps": "fair"}}, "windows.caps: "),
        ({"windows": {"slack": 0.5}}, "windows.slack: "),
        ({"windows": {"slak": 2}}, "windows.slak: unknown key"),
        ({"host": [{"address": "10.0.0.1", "rate_gbit": -1}]}, "rate_gbit"),
    ],
)
def test_errors_name_the_table(changed: dict[str, Any], error: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make_config({**FILE, **changed}, "file")
    assert str(caught.value).startswith("file: ")
    assert error in str(caught.value)


def test_all_of_it_can_change_while_the_controller_runs() -> None:
    before = make_config({}, "file")
    asked = make_config({**FILE, "metrics": "127.0.0.1:9"}, "file")
    found = changes(before, before, asked)
    assert found.kept == ["metrics"]
    assert {key.partition(".")[0] for key in found.taken} == {
        "congestion", "job", "tenants", "windows",
    }  # fmt: skip
    assert found.config.job_rules == asked.job_rules
    assert found.config.windows == asked.windows
    assert found.config.congestion == asked.congestion
