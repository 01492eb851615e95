"""How a rank comes to know that its switch is lost: by itself, or from others."""

from __future__ import annotations

from datetime import timedelta

from torch._C._distributed_c10d import HashStore

from ina.host.errors import SwitchLostError
from ina.torch.fallback.member import Member
from ina.torch.fallback.signal import LossSignal


class Slow(LossSignal):
    """Is asked, and this rank's session finds something before the answer is there."""

    member: Member

    def heard(self) -> str | None:
        answer = super().heard()
        assert self.member.on_failure(SwitchLostError("found here"))
        return answer


def slow() -> Slow:
    store = HashStore()
    store.set_timeout(timedelta(seconds=5))
    signal = Slow(store, 2)
    signal.member = Member(signal)
    signal.member.used.set()
    return signal


def test_what_a_rank_finds_while_it_asks_others_stays() -> None:
    """Else it knew of a loss, but no reason, took nothing over, and waited for ever."""
    signal = slow()
    signal.member.listen()
    assert signal.member.lost.is_set()
    assert signal.member.reason == "found here"


def test_what_others_say_does_not_hide_it() -> None:
    signal = slow()
    signal.tell("found there")
    signal.member.listen()
    assert signal.member.reason == "found here"


def test_others_are_heard() -> None:
    signal = LossSignal(HashStore(), 2)
    member = Member(signal)
    member.listen()
    assert member.reason is None
    signal.tell("found there")
    member.listen()
    assert member.reason == "found there"
