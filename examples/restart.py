"""Train through the death of workers: start all again, go on from the last checkpoint.

    torchrun --nproc-per-node 3 --max-restarts 3 examples/restart.py --checkpoint /tmp/run.pt

Kill a worker (``kill -9``) while it runs: the others raise an error that names it, torchrun starts
all of them again, the controller gives their job its slots back, and the parameters at the end are
those of a run that nobody disturbed, bit for bit.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import ina.torch  # noqa: F401 - registers backend "ina"


def parse_arguments() -> argparse.Namespace:
    """The command line; --help explains it."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", type=Path, required=True, help="file to go on from")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=5, help="steps from checkpoint to checkpoint")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
    return parser.parse_args()


def batch_of(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Inputs (32, 10) and targets (32, 1) that depend on the step and the rank alone.

    So a step that is done again after a restart is the same step.
    """
    generator = torch.Generator().manual_seed(1000 * step + rank)
    inputs = torch.randn(32, 10, generator=generator)
    return inputs, inputs.sin().sum(1, keepdim=True)


def save(path: Path, step: int, net: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Replace the checkpoint as a whole: a kill in the middle leaves the one before."""
    part = path.with_suffix(".part")
    state = {"step": step, "net": net.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, part)
    os.replace(part, path)


def train(checkpoint: Path, steps: int, every: int = 5, pause_s: float = 0.0) -> str:
    """Train to the end over the default group, from ``checkpoint`` if it is there.

    Returns a digest of the parameters.
    """
    rank = dist.get_rank()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(10, 100), nn.Tanh(), nn.Linear(100, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
    first = 0
    if checkpoint.exists():
        state = torch.load(checkpoint)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        first = state["step"]
    # All read the same file before rank 0 writes the next one.
    dist.barrier()
    if rank == 0 and first:
        print(f"going on from step {first}", flush=True)
    model = DistributedDataParallel(net)
    for step in range(first, steps):
        inputs, targets = batch_of(step, rank)
        optimizer.zero_grad()
        torch.autograd.backward((model(inputs) - targets).square().mean())
        optimizer.step()
        if rank == 0 and (step + 1) % every == 0:
            save(checkpoint, step + 1, net, optimizer)
        time.sleep(pause_s)
    parameters = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
    return hashlib.sha256(parameters.numpy().tobytes()).hexdigest()


def main() -> None:
    """One worker."""
    arguments = parse_arguments()
    torch.set_num_threads(1)
    dist.init_process_group("ina")
    digest = train(arguments.checkpoint, arguments.steps, arguments.every, arguments.pause)
    if dist.get_rank() == 0:
        print(f"parameters {digest[:16]} after {arguments.steps} steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
