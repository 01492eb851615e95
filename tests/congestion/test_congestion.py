"""Window algorithms by name: what there is, and what is refused."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from ina._native.host import WorkerCore
from ina.congestion import ALGORITHMS, Congestion, CongestionError
from tests.worlds.parts import INT32, random_parts
from tests.worlds.virtual.cores import worker_config
from tests.worlds.virtual.star import Star

ROOT = Path(__file__).parent.parent.parent


def test_each_header_of_an_algorithm_is_in_the_table() -> None:
    others = {
        *("window.hpp", "algorithms.hpp", "python_window.hpp", "rounds.hpp", "trains.hpp"),
        "lane_claims.hpp",
        "slot_claims.hpp",
    }
    headers = {p.name for p in (ROOT / "native/congestion").glob("*.hpp")} - others
    assert {f"{name}.hpp" for name in ALGORITHMS} == headers


def test_the_usual_one_is_what_a_session_gets() -> None:
    assert Congestion().algorithm == "ina"
    assert str(Congestion()) == "ina"


@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_algorithm_moves_a_tensor_and_stays_between_one_and_all(name: str) -> None:
    star = Star(2, slots=16, window=Congestion(name).choice())
    parts = random_parts(INT32, 2, 64 * 40, 1)
    first, second = star.all_reduce(parts)
    assert (first == sum(parts)).all()
    assert (second == first).all()
    assert all(1 <= worker.in_flight_limit <= 8 for worker in star.workers)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_each_option_takes_the_ends_of_its_range_and_nothing_beyond(name: str) -> None:
    for option in ALGORITHMS[name].options:
        assert option.least <= option.usual <= option.most
        assert option.what
        for value in (option.least, option.usual, option.most):
            assert Congestion(name, {option.name: value}).options == {option.name: value}
        for value in (option.least - 1, option.most + 1, float("nan")):
            with pytest.raises(CongestionError, match=f"'{option.name}' of '{name}' must be"):
                Congestion(name, {option.name: value})


def test_an_option_takes_effect() -> None:
    config = worker_config(0, 2, 128, 8)
    for packets in (1, 7):
        window = Congestion("fixed", {"packets": packets})
        assert WorkerCore(config, congestion=window.choice()).in_flight_limit == packets


@pytest.mark.parametrize(
    ("table", "complaint"),
    [
        (
            {"algorithm": "cubic"},
            "no congestion algorithm is named 'cubic'; there are ina, adaptive, ",
        ),
        ({"algorithm": "fixed", "shrink": 0.5}, "'fixed' has no option 'shrink'"),
        ({"shrink": "half"}, "option 'shrink': want a number, got 'half'"),
        ({"shrink": True}, "option 'shrink': want a number, got True"),
        ({"algorithm": 3}, "no congestion algorithm is named '3'"),
    ],
)
def test_what_there_is_not_is_refused_by_name(table: dict[str, object], complaint: str) -> None:
    with pytest.raises(CongestionError, match=re.escape(complaint)):
        Congestion.from_table(table)


def test_it_survives_a_pickle() -> None:
    one = Congestion("adaptive", {"shrink": 0.5})
    assert pickle.loads(pickle.dumps(one)) == one
