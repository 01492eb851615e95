"""Differences minimised in each mode whose packets have something around ina's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ina.p4 import names
from ina.protocol.bth import BTH_BYTES, ROCE_UDP_PORT
from ina.protocol.icrc import ICRC_BYTES, icrc
from ina.protocol.spec import HEADER_BYTES
from ina.testing.case import Arrival
from ina.testing.differential import Comparison, still_differs
from ina.testing.frames import ETHERNET_BYTES, PAYLOAD_OFFSET, Frame
from ina.testing.minimise import minimise
from ina.testing.model_device import ModelDevice
from ina.testing.wrapping import WRAPPINGS

_SEQ_END = PAYLOAD_OFFSET + BTH_BYTES + 16
_VALUES = PAYLOAD_OFFSET + BTH_BYTES + HEADER_BYTES


class Forgetful(ModelDevice):
    """A model that loses the packets of every sixteenth chunk."""

    name = "forgetful"

    def process(self, frames: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:  # type: ignore[override]
        return super().process([it for it in frames if not is_lost(it[1])])


def is_lost(data: bytes) -> bool:
    is_roce = data[36:38] == ROCE_UDP_PORT.to_bytes(2, "big") and len(data) > _SEQ_END
    return is_roce and data[_SEQ_END - 1] % 16 == 10


def is_sealed(data: bytes) -> bool:
    return data[-ICRC_BYTES:] == icrc(data[ETHERNET_BYTES:-ICRC_BYTES])


@pytest.mark.parametrize("mode", [names.ROCE, names.TRANSPARENT])
def test_what_does_not_matter_is_zero_and_icrc_is_right(mode: str) -> None:
    with ModelDevice(mode) as model, Forgetful(mode) as wrong:
        found = Comparison(model, wrong, 56, seed=3).run(10_000)
        assert found is not None
        least = minimise(found, model, wrong, budget_s=60.0)
        assert still_differs(least.case, model, wrong) is not None
    arrivals = [step.frame for step in least.case.steps if isinstance(step, Arrival)]
    assert 1 <= len(arrivals) <= 3
    assert any(map(is_lost, arrivals))
    for frame in arrivals:
        assert len(frame) - _VALUES - ICRC_BYTES in (0, 4 * 56)  # of a header alone, or not
        assert is_sealed(frame)
        assert not any(frame[_VALUES:-ICRC_BYTES])


@pytest.mark.parametrize("framing", ["rocev2", "ring"])
@given(payload=st.binary(max_size=80), damage=st.integers(0, 1 << 32 - 1))
def test_a_wrong_icrc_stays_as_wrong(framing: str, payload: bytes, damage: int) -> None:
    wrapping = WRAPPINGS[framing]
    whole = wrapping.arriving(Frame(payload, 1, 2).build())
    sealed = int.from_bytes(whole[-ICRC_BYTES:], "big")
    broken = whole[:-ICRC_BYTES] + (sealed ^ damage).to_bytes(ICRC_BYTES, "big")
    cleared = wrapping.without_values(broken)
    kept = min(_VALUES, len(broken) - ICRC_BYTES)
    assert len(cleared) == len(broken)
    assert cleared[:kept] == broken[:kept]
    assert not any(cleared[kept:-ICRC_BYTES])
    assert is_sealed(cleared) == (damage == 0)


@given(data=st.binary(max_size=90))
def test_any_bytes_keep_their_length(data: bytes) -> None:
    for wrapping in WRAPPINGS.values():
        for frame in (data, Frame(data, 1, 2, dst_udp=4791).build()):
            assert len(wrapping.without_values(frame)) == len(frame)
