"""Join tokens and member keys."""

from __future__ import annotations

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ina.controller.jobs.tokens import hash_token, member_key, new_key_seed, token_matches
from tests.selection import examples

TOKENS = st.text(max_size=200)


@settings(max_examples=examples(100))
@given(TOKENS, TOKENS)
def test_only_the_same_token_matches(token: str, other: str) -> None:
    hashed = hash_token(token)
    assert token_matches(token, hashed)
    assert token_matches(other, hashed) == (other == token)


@settings(max_examples=examples(100))
@given(TOKENS.filter(bool))
def test_a_hash_is_salted_and_does_not_show_the_token(token: str) -> None:
    assert hash_token(token) != hash_token(token)
    assert len(token) < 8 or token.encode() not in hash_token(token)


def test_no_token_is_stored_as_none() -> None:
    assert hash_token("") == b""


MEMBERS = st.tuples(
    st.binary(min_size=16, max_size=16), st.integers(0, 2**32 - 1), st.integers(0, 31)
)


@settings(max_examples=examples(100))
@given(MEMBERS, MEMBERS)
def test_keys_differ_by_job_by_incarnation_and_by_rank(
    one: tuple[bytes, int, int], other: tuple[bytes, int, int]
) -> None:
    assume(one != other)
    assert member_key(*one) == member_key(*one)
    assert member_key(*one) != member_key(*other)


def test_seeds_are_random() -> None:
    assert new_key_seed() != new_key_seed()
