"""The order of operations that follow from others' results, with operations played by hand."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ina.host import SessionClosedError
from ina.host.turns import Later, Then, Together, Turns
from tests.selection import examples


class Played:
    """A Sum that ends when the test says; `callbacks` are added while it is under way."""

    def __init__(self, name: object) -> None:
        self.name = name
        self.callbacks: list[Callable[[Played], object]] = []
        self.error: Exception | None = None
        self._ended = threading.Event()

    def add_done_callback(self, function: Callable[[Played], object]) -> None:
        if self._ended.is_set():
            function(self)
        else:
            self.callbacks.append(function)

    def done(self) -> bool:
        return self._ended.is_set()

    def wait(self) -> object:
        assert self._ended.wait(30)
        if self.error is not None:
            raise self.error
        return self.name

    def finish(self, error: Exception | None = None) -> None:
        self.error = error
        self._ended.set()
        callbacks, self.callbacks = self.callbacks, []
        for function in callbacks:
            function(self)


class Order:
    """What was begun, in order."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.begun: list[Played] = []

    def submit(self, name: object, after: Any = None) -> Any:
        def begin() -> Played:
            self.begun.append(Played(name))
            return self.begun[-1]

        return self.turns.submit(begin, after)

    @property
    def names(self) -> list[object]:
        return [one.name for one in self.begun]


def test_without_a_turn_that_waits_it_is_the_operation_itself() -> None:
    order = Order()
    assert order.submit("a") is order.begun[0]
    assert not order.turns.are_waited_for


def test_what_follows_from_a_result_keeps_its_place() -> None:
    order = Order()
    counters = order.submit("counters")
    known = Then(counters, lambda name: f"of {name}")
    values = order.submit("values", known)
    later = order.submit("later")
    assert order.names == ["counters"]
    assert not values.done()
    assert not later.done()
    heard: list[object] = []
    later.add_done_callback(lambda it: heard.append(it.wait()))
    order.begun[0].finish()
    assert order.names == ["counters", "values", "later"]
    assert known.wait() == "of counters"
    assert not order.turns.are_waited_for
    order.begun[2].finish()
    assert (values.done(), later.done(), heard) == (False, True, ["later"])
    order.begun[1].finish()
    assert values.wait() == "values"
    assert order.submit("last") is order.begun[3]


steps = st.lists(st.sampled_from(["sparse", "dense"]), min_size=1, max_size=8)


@settings(max_examples=examples(200), deadline=None)
@given(steps, st.integers(0, 2**32))
def test_the_order_is_that_of_submission_whenever_things_end(kinds: list[str], seed: int) -> None:
    """On each rank operations end at other times: between submissions, and in another order."""
    expected: list[str] = []
    for number, kind in enumerate(kinds):
        expected += [f"c{number}", f"v{number}"] if kind == "sparse" else [f"d{number}"]
    chance = random.Random(seed)
    order = Order()

    def some_end(share: float) -> None:
        for one in list(order.begun):
            if not one.done() and chance.random() < share:
                one.finish()

    results = []
    for number, kind in enumerate(kinds):
        if kind == "sparse":
            counters = order.submit(f"c{number}")
            some_end(0.3)
            results.append(order.submit(f"v{number}", Then(counters, lambda name: name)))
        else:
            results.append(order.submit(f"d{number}"))
        some_end(0.3)
    for _ in expected:
        some_end(1.0)
    assert order.names == expected
    assert [it.wait() for it in results] == [it for it in expected if it[0] != "c"]


def test_an_error_ends_what_follows_from_it_and_nothing_else() -> None:
    order = Order()
    counters = order.submit("counters")
    known = Then(counters, lambda name: name)

    def begin() -> Played:
        known.wait()
        raise AssertionError("it has raised")

    values = order.turns.submit(begin, known)
    later = order.submit("later")
    order.begun[0].finish(ValueError("lost"))
    with pytest.raises(ValueError, match="lost"):
        values.wait()
    assert order.names == ["counters", "later"]
    order.begun[1].finish()
    assert later.wait() == "later"


def test_what_cannot_begin_in_its_turn_ends_with_why() -> None:
    order = Order()
    order.submit("values", order.submit("counters"))

    def begin() -> Played:
        raise ValueError("no such operation")

    refused = order.turns.submit(begin)
    order.begun[0].finish()
    with pytest.raises(ValueError, match="no such operation"):
        refused.wait()
    with pytest.raises(ValueError, match="no such operation"):
        order.turns.submit(begin)  # at once


def test_what_waits_ends_where_nothing_follows() -> None:
    order = Order()
    values = order.submit("values", order.submit("counters"))
    later = order.submit("later")
    order.turns.end(lambda: SessionClosedError("closed"))
    for one in (values, later, order.submit("more", Played("never"))):
        with pytest.raises(SessionClosedError):
            one.wait()
    order.begun[0].finish(SessionClosedError("closed"))
    assert order.names == ["counters"]
    assert order.submit("itself") is order.begun[1]  # says so itself


def test_a_wait_has_another_thread_tell_the_end() -> None:
    """The completion thread must not wait for what it has to bring itself."""
    order = Order()
    counters = order.submit("counters")
    order.submit("values", counters)
    third = order.submit("third")
    before = len(counters.callbacks)
    assert not third.has_ended(0.0)
    assert len(counters.callbacks) == before + 1  # which a Watcher takes as the sign
    counters.finish()
    before = len(order.begun[2].callbacks)
    assert not Together([third, third]).has_ended(0.0)
    assert len(order.begun[2].callbacks) == before + 1
    order.begun[2].finish()
    assert third.wait() == "third"


def test_all_together() -> None:
    first, second = Played("first"), Played("second")
    both = Together([first, second])
    second.finish()
    assert not both.done()
    first.finish()
    assert both.wait() == ["first", "second"]
    assert Together[object]([]).wait() == []
    broken = Played("broken")
    some = Together([first, broken])
    broken.finish(ValueError("lost"))
    with pytest.raises(ValueError, match="lost"):
        some.wait()


def test_each_caller_has_an_error_of_its_own() -> None:
    source = Played("a")
    later: Later[object] = Then(source, lambda name: name)
    source.finish(ValueError("lost"))
    first, second = later.exception(), later.exception()
    assert first is not second
    assert str(first) == str(second) == "lost"
