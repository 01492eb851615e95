"""Which lanes claim slots that others want: alike on all workers, and ever more seldom."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ina._native.congestion import LaneClaims


def rounds(claims: LaneClaims, lane: int, count: int, wanted: bool = True) -> str:
    """Of a lane whose slot others always want, or never: where it claims one."""
    said = ""
    for _ in range(count):
        is_claiming = claims.claims(lane)
        said += "x" if is_claiming else "."
        claims.answered(lane, wanted and is_claiming)
    return said


def test_it_waits_twice_as_long_each_time_up_to_a_limit() -> None:
    said = rounds(LaneClaims(3), 5, 40)
    assert said == "x." + "x.." + "x...." + 3 * "x........" + "x.."


def test_it_claims_again_at_once_where_nobody_wants_the_slot() -> None:
    claims = LaneClaims()
    assert rounds(claims, 0, 5) == "x.x.."
    assert rounds(claims, 0, 4, wanted=False) == "xxxx"
    assert rounds(claims, 0, 4) == "x.x."


def test_lanes_are_apart() -> None:
    claims = LaneClaims()
    claims.answered(3, True)
    assert [claims.claims(lane) for lane in range(6)] == [True, True, True, False, True, True]


def test_word_of_a_round_in_which_it_claimed_none_changes_nothing() -> None:
    claims, other = LaneClaims(), LaneClaims()
    for one in (claims, other):
        rounds(one, 0, 3)
    claims.answered(0, True)
    other.answered(0, False)
    assert rounds(claims, 0, 40) == rounds(other, 0, 40)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60),
)
def test_it_is_a_function_of_each_lanes_results(
    results: list[tuple[int, bool]],
) -> None:
    """Workers get the results of different lanes in different orders."""
    one, other = LaneClaims(), LaneClaims()
    for lane, wanted in results:
        one.answered(lane, wanted)
    for lane, wanted in sorted(results, key=lambda result: -result[0]):
        other.answered(lane, wanted)
    assert [one.claims(lane) for lane in range(4)] == [other.claims(lane) for lane in range(4)]


@given(st.lists(st.booleans(), max_size=40), st.lists(st.booleans(), max_size=40))
def test_who_begins_later_agrees_once_nobody_wants_the_slot(
    before: list[bool], others: list[bool]
) -> None:
    one, other = LaneClaims(), LaneClaims()
    for wanted in before:
        one.answered(0, wanted)
    for wanted in others:
        other.answered(0, wanted)
    for claims in (one, other):
        rounds(claims, 0, 65, wanted=False)
    assert rounds(one, 0, 300) == rounds(other, 0, 300)
