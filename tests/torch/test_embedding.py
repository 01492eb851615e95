"""Embeddings over ranks: torch's sums, torch's training, and the same bits whatever is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.torch import embedding_cases as cases
from tests.torch.embedding_cases import (
    OPTIMIZERS,
    REFRESH_STEPS,
    SHIFT_AT,
    Training,
)
from tests.worlds.processes.launch import Case, finish, launch, outcome, start

WORKERS = 3


def run(case: Case, folder: Path, loss: str = "0") -> list[Any]:
    folder.mkdir()
    return launch(case, WORKERS, folder, environ={"INA_LOSS_RATE": loss}, backend="gloo")


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("adagrad", 6),
        pytest.param("sgd", 50, marks=pytest.mark.long),
        pytest.param("adagrad", 50, marks=pytest.mark.long),
        pytest.param("rowwise_adagrad", 50, marks=pytest.mark.long),
    ],
)
def test_training_is_one_process_s_and_has_the_same_bits_with_losses(
    name: str, steps: int, tmp_path: Path
) -> None:
    refresh = 2 if steps < 50 else 10
    outcomes = run(Training(name, steps, refresh_steps=refresh), tmp_path / "a")
    assert all(outcome == outcomes[0] for outcome in outcomes)
    lossy = run(
        Training(name, steps, refresh_steps=refresh, prefetch=True), tmp_path / "b", loss="0.05"
    )
    assert lossy == outcomes
    if steps == 50:
        assert run(Training(name, steps, refresh_steps=refresh), tmp_path / "c") == outcomes
    for table, want in cases.in_one_process(name, steps, WORKERS).items():
        torch.testing.assert_close(cases.values_of(outcomes[0], table), want, rtol=1e-5, atol=1e-5)


def test_exact_forward_has_the_bits_of_torch(tmp_path: Path) -> None:
    assert all(run(cases.exact_forward, tmp_path / "a"))


def test_what_is_asked_for_wrongly_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    for said in run(cases.bad_ids, tmp_path / "a"):
        assert said == [
            "NoSuchRowError: table 'user': row 500: it has rows 0 to 499",
            "NoSuchRowError: table 'user': row -1: it has rows 0 to 499",
            "InvalidBagsError: table 'user': ids: torch.float32: want integers",
        ]


def test_ranks_that_disagree_say_so(tmp_path: Path) -> None:
    said = run(cases.other_tables, tmp_path / "a")
    assert set(said) == {"HostsDifferError: ranks 0 and 1 have other tables, or in another order"}
    for one in run(cases.other_rates, tmp_path / "b"):
        assert "disagree about the learning rate" in one or "has given up" in one, one


def test_weights_of_samples_have_gradients(tmp_path: Path) -> None:
    assert max(run(cases.weights_have_gradients, tmp_path / "a")) < 1e-5


def test_a_saved_state_trains_on(tmp_path: Path) -> None:
    assert all(run(cases.saves_and_loads, tmp_path / "a"))


def test_a_rank_that_is_killed_is_named_by_the_others(tmp_path: Path) -> None:
    processes = start(
        cases.one_is_killed, WORKERS, tmp_path, backend="gloo", destroy=False, group_timeout_s=40.0
    )
    finish(processes, 60.0)
    for rank in (0, 2):
        said = outcome(tmp_path, rank)[1]
        assert said.startswith("HostLostError: embeddings, step "), said
        assert ": host 1 (127.0.0.1:" in said


@pytest.mark.long
@pytest.mark.parametrize("victim", range(WORKERS))
@pytest.mark.parametrize(
    ("trains", "refresh_steps"), [(True, 0), (True, 3), (False, 0)], ids=["cold", "hot", "infers"]
)
def test_whoever_is_killed_whenever_is_named_and_nobody_reads_what_is_wrong(
    victim: int, trains: bool, refresh_steps: int, tmp_path: Path
) -> None:
    processes = start(
        cases.Killed(victim, trains, refresh_steps),
        *(WORKERS, tmp_path),
        backend="gloo",
        destroy=False,
        group_timeout_s=40.0,
    )
    finish(processes, 90.0)
    for rank in set(range(WORKERS)) - {victim}:
        said = outcome(tmp_path, rank)[1]
        assert said.startswith("HostLostError: embeddings, step "), said
        assert f": host {victim} (127.0.0.1:" in said, said


@pytest.mark.long
@pytest.mark.parametrize("loss", ["0", "0.05"])
def test_replicas_are_equal_after_many_steps(loss: str, tmp_path: Path) -> None:
    (first, *others) = run(cases.ManySteps(1000), tmp_path / "a", loss)
    assert others == [first] * (WORKERS - 1)
    _, hot, refreshes = first
    assert hot > 3
    assert refreshes == 100


@pytest.mark.long
def test_bytes_recover_after_popularity_has_shifted(tmp_path: Path) -> None:
    received = np.sum(run(cases.shifts, tmp_path / "a"), axis=0)
    # Rows become hot after 10 steps, and others after each 20; the step that begins then brings
    # them, too.
    before, shifted, after = (
        np.median(received[last - REFRESH_STEPS + 1 : last])
        for last in (SHIFT_AT, SHIFT_AT + REFRESH_STEPS, SHIFT_AT + 2 * REFRESH_STEPS)
    )
    assert shifted > 1.5 * before
    assert after < 1.1 * before


def test_rows_of_others_are_kept_in_inference(tmp_path: Path) -> None:
    for same, sent, hits in run(cases.cached, tmp_path / "a"):
        assert same
        assert sent < 60 * 8 * 4  # others may be late, and ask
        assert hits == 2 * 40


def test_a_rank_alone_needs_no_group() -> None:
    assert cases.exact_forward(0, 1)


def test_optimizers_are_those_of_the_reference() -> None:
    from ina.embed.rules import RULES

    assert set(RULES) == set(OPTIMIZERS)
