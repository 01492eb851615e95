"""Where a store is: what is shown of it, and what cannot be one."""

from __future__ import annotations

import pytest

from ina.controller.config import make_config
from ina.controller.store_url import IN_MEMORY, path_of, problem_of, shown

FULL = "postgresql://ina:secret@db1:5432,db2/x?target_session_attrs=read-write&password=secret"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:////var/lib/ina/a?b#c.db", "/var/lib/ina/a?b#c.db"),
        (FULL, "postgresql://ina@db1:5432,db2/x"),
        ("postgres://h/x", "postgres://h/x"),
        ("postgresql:///x?host=/run/postgresql", "postgresql:///x"),
        ("", ""),
    ],
)
def test_what_is_shown(url: str, said: str) -> None:
    assert shown(url) == said


def test_a_path_is_a_url() -> None:
    for path in ("jobs.db", "/var/lib/ina/jobs.db"):
        store = make_config({"store": {"path": path}}, "test").store
        assert path_of(store.location) == path
        assert store.is_shared
    assert make_config({}, "test").store.location == IN_MEMORY
    assert not make_config({}, "test").store.is_shared


def test_an_error_shows_no_password() -> None:
    said = problem_of("mysql://u:secret@h/d")
    assert said is not None
    assert "secret" not in said
