"""One rank of ``ina bench routing``: steps of DDP, whose gradients cross the fabric.

Rank 0 prints one JSON line. Backend, job and place come from the environment and the command line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ina.torch  # noqa: F401  # registers the backend

_WARM_UP = 2
_INPUTS, _CLASSES, _BATCH = 64, 10, 8
_CHECKED = 3000
"""Integers that are summed beside each step."""


def main() -> None:
    """Trains, checks and tells."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="ina")
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(arguments.backend)
    rank, world = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    width = arguments.width
    layers = nn.Sequential(
        *(nn.Linear(_INPUTS, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()),
        nn.Linear(width, _CLASSES),
    )
    model = DistributedDataParallel(layers)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    chance = torch.Generator().manual_seed(100 + rank)
    step_s, wrong = [], 0
    for step in range(_WARM_UP + arguments.steps):
        images = torch.randn(_BATCH, _INPUTS, generator=chance)
        labels = torch.randint(0, _CLASSES, (_BATCH,), generator=chance)
        began_s = time.perf_counter()
        optimiser.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(model(images), labels))
        optimiser.step()
        step_s.append(time.perf_counter() - began_s)
        numbers = torch.arange(_CHECKED, dtype=torch.int32) + step
        whole = numbers + rank
        dist.all_reduce(whole)
        wrong += int((whole != world * numbers + world * (world - 1) // 2).sum())
    flat = torch.cat([it.detach().flatten() for it in model.parameters()])
    digest = hashlib.sha256(flat.numpy().tobytes()).hexdigest()
    mark = torch.tensor([int(digest[:5], 16), wrong], dtype=torch.int32)
    own = int(mark[0])
    dist.all_reduce(mark)
    if rank == 0:
        found = {
            "kind": "routed",
            "step_s": step_s[_WARM_UP:],
            "elems": flat.numel(),
            "parameters": digest,
            "wrong": int(mark[1]) + int(int(mark[0]) != world * own),
        }
        print(json.dumps(found), flush=True)
    dist.destroy_process_group()
    # Gloo's threads may hold tensors still, and abort the process that takes the interpreter down
    # (pytorch/pytorch#179291).
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
