"""What a job says of itself: deadlines, steps, how long it waits for slots."""

from __future__ import annotations

from datetime import datetime

import pytest

from ina.errors import InvalidInputError
from ina.host.wishes import Wishes, deadline_of


@pytest.mark.parametrize(
    ("text", "unix_s"),
    [
        ("", 0.0),
        ("90", 1090.0),
        ("0.5", 1000.5),
        ("2026-11-25T18:00:00+01:00", 1795626000.0),
        ("2026-11-25T18:00", datetime(2026, 11, 25, 18).timestamp()),
    ],
)
def test_a_deadline_is_seconds_from_now_or_a_time(text: str, unix_s: float) -> None:
    assert deadline_of(text, 1000.0) == unix_s


@pytest.mark.parametrize("text", ["soon", "-5", "0", "nan", "inf", "18:00"])
def test_what_is_no_deadline_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match=text):
        deadline_of(text, 1000.0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("deadline_unix_s", -1.0),
        ("deadline_unix_s", float("nan")),
        ("steps", -1),
        ("queue_s", -1.0),
        ("queue_s", 1e6),
    ],
)
def test_wishes_that_cannot_be_are_refused(field: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=f"{field} is "):
        Wishes(**{field: value})  # type: ignore[arg-type]
