"""Random headers and values for the protocol's tests."""

from __future__ import annotations

from hypothesis import strategies as st

from ina.protocol.codec import Header
from ina.protocol.layout import LAYOUT
from ina.protocol.spec import VERSION, Flag, Kind

_SPECIAL = {"version", "kind", "flags", "value_count"}


def headers(value_counts: st.SearchStrategy[int]) -> st.SearchStrategy[Header]:
    """Any header that the decoder accepts."""
    plain = {
        field.name: st.integers(0, field.mask) for field in LAYOUT if field.name not in _SPECIAL
    }
    return st.builds(
        Header,
        version=st.just(VERSION),
        kind=st.sampled_from(Kind),
        flags=st.integers(0, 255).map(Flag),
        value_count=value_counts,
        **plain,
    )


def packets(max_values: int = 8) -> st.SearchStrategy[tuple[Header, list[int]]]:
    """Any header with as many int32 values as it announces."""
    int32s = st.integers(-(2**31), 2**31 - 1)
    return headers(st.integers(0, max_values)).flatmap(
        lambda header: st.tuples(
            st.just(header),
            st.lists(int32s, min_size=header.value_count, max_size=header.value_count),
        )
    )
