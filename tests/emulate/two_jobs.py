"""Two jobs over two spines: their hosts, and what each rank runs: a few steps of DDP, or of sums of
integers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ina.files import root
from tests.worlds.processes.emulations import start
from tests.worlds.processes.forks import Running
from tests.worlds.processes.stand_ins import python

EXAMPLE = root() / "examples" / "topologies" / "two_spines.toml"
ONE, TWO = "h1,h2,h4,h5,h7,h8", "h3,h6,h9"
"""Hosts of two jobs, both over all racks."""
TRAIN = """
import hashlib, json, os, sys, time
import torch, torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
import ina.torch

torch.set_num_threads(1)
steps, width = int(sys.argv[1]), int(sys.argv[2])
dist.init_process_group("ina")
rank = dist.get_rank()
torch.manual_seed(1)
layers = nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
model = DistributedDataParallel(nn.Sequential(*layers))
optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
chance = torch.Generator().manual_seed(100 + rank)
taken = []
for step in range(steps):
    images = torch.randn(8, 64, generator=chance)
    labels = torch.randint(0, 10, (8,), generator=chance)
    began = time.monotonic()
    optimiser.zero_grad()
    nn.functional.cross_entropy(model(images), labels).backward()
    optimiser.step()
    whole = torch.arange(3000, dtype=torch.int32) + rank + step
    dist.all_reduce(whole)
    world = dist.get_world_size()
    want = world * (torch.arange(3000) + step) + world * (world - 1) // 2
    assert torch.equal(whole.long(), want), f"step {step}: a wrong sum"
    taken.append(time.monotonic() - began)
    if rank == 0:
        print(f"step {step}", flush=True)
flat = torch.cat([it.detach().flatten() for it in model.parameters()])
print(json.dumps({
    "rank": rank,
    "parameters": hashlib.sha256(flat.numpy().tobytes()).hexdigest(),
    "step_s": sorted(taken[1:])[len(taken) // 2],
    "total_s": sum(taken),
    "fallbacks": ina.torch.stats().fallbacks,
    "returns": ina.torch.stats().switch_returns,
}), flush=True)
dist.destroy_process_group()
"""
SUM = """
import os, subprocess, sys
import numpy as np
from ina.host import Session, WorkerOptions

def numbers(rank):
    return np.random.default_rng(rank).integers(-1000, 1000, 5000, np.int32)

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where, here = os.environ["INA_CONTROLLER"], os.environ["INA_HOST"]
with Session.join(where, "sum", rank, world, WorkerOptions(host=here)) as session:
    want = sum(map(numbers, range(world)))
    for _ in range(3):
        assert (session.all_reduce(numbers(rank)) == want).all()
    if rank == 0:
        subprocess.run([sys.executable, "-m", "ina", "fabric", "show", "--json"], check=True)
    session.all_reduce(numbers(rank))
"""


def train(name: str, hosts: str, script: Path, steps: int, width: int) -> Running:
    return start(
        *("run", "--name", name, "--hosts", hosts, "--timeout-s", "300"),
        *("--", python(), script, str(steps), str(width)),
    )


def ended(job: Running) -> dict[str, Any]:
    out, err = job.communicate(timeout=400)
    assert job.returncode == 0, out + err
    said: dict[str, Any] = json.loads(
        next(line for line in out.splitlines() if line.startswith('{"rank"'))
    )
    return said
