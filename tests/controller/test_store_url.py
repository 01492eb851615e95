"""Where a store is: what is shown of it, and what cannot be one."""

from __future__ import annotations

import pytest

from ina.controller.config import make_config
from ina.controller.config.store_url import IN_MEMORY, path_of, problem_of, shown

FULL = "postgresql://ina:secret@db1:5432,db2/x?target_session_attrs=read-write&password=secret"


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("sqlite:///jobs.db", "jobs.db"),
        ("sqlite:////var/lib/ina/a?b#c.db", "/var/lib/ina/a?b#c.db"),
        (FULL, "postgresql://ina@db1:5432,db2/x"),
        ("postgres://h/x", "postgres://h/x"),
        ("postgresql:///x?host=/run/postgresql", "postgresql:///x"),
        ("postgresql://ina:s#cret@h/x", "postgresql://..."),
        ("postgresql://ina:s/cret@h/x", "postgresql://..."),
        ("postgresql://ina:s?cret@h/x", "postgresql://..."),
        ("postgresql://ina:s[cret@h/x", "postgresql://..."),
        ("postgresql://ina@[::1]:5432/x", "postgresql://ina@[::1]:5432/x"),
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


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("mysql://u:secret@h/d", "'mysql://u@h/d': want sqlite:///PATH or postgresql://"),
        ("postgresql://ina:secret#secret@h/x", "write @ : / ? # [ ] in these as %40"),
        ("postgresql://ina:secret/secret@h/x", "write @"),
        ("postgresql://ina@[::1/x", "write @"),
        ("sqlite:///:memory:", "leave url and path empty"),
    ],
)
def test_what_cannot_be_one_is_said_without_a_password(url: str, says: str) -> None:
    said = problem_of(url)
    assert said is not None
    assert says in said
    assert "secret" not in said


@pytest.mark.parametrize("url", [FULL, "postgresql:///x?host=/run/postgresql", "sqlite:///a"])
def test_what_can_be_one(url: str) -> None:
    assert problem_of(url) is None
