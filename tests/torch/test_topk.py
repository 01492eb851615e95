"""The largest blocks of gradients go over the network, the others are kept for the next step."""

from __future__ import annotations

from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st

from ina.torch.topk import largest, spread
from tests.torch import topk_cases
from tests.worlds.processes.launch import launch


def test_what_is_sent_and_kept(tmp_path: Path) -> None:
    """In one group of processes, with loss.

    pytorch #48670, #49418: what was kept by a bucket's index was lost, or added to other
    parameters, when DDP had built its buckets anew.
    """
    launch(topk_cases.everything, 2, tmp_path / "w", environ={"INA_LOSS_RATE": "0.02"})


@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.5]), min_size=1, max_size=30), st.integers(1, 30))
def test_of_equal_blocks_the_first_are_chosen(norms: list[float], count: int) -> None:
    order = sorted(range(len(norms)), key=lambda it: (-norms[it], it))
    assert largest(torch.tensor(norms), count).tolist() == sorted(order[:count])


@given(st.data())
def test_blocks_go_back_to_where_they_were(data: st.DataObject) -> None:
    elems, block = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 9))
    blocks = -(-elems // block)
    chosen = sorted(data.draw(st.sets(st.integers(0, blocks - 1))))
    padded = torch.arange(1.0, blocks * block + 1).view(blocks, block)
    flat = torch.zeros(elems, dtype=data.draw(st.sampled_from([torch.float32, torch.float16])))
    spread(padded[chosen], torch.tensor(chosen, dtype=torch.int64), flat)
    wanted = torch.zeros_like(padded)
    wanted[chosen] = padded[chosen]
    assert torch.equal(flat.float(), wanted.view(-1)[:elems])
