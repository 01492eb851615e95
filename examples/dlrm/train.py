"""Train a DLRM whose embedding tables are spread over the ranks.

    torchrun --nproc-per-node 4 examples/dlrm/train.py
    torchrun --nproc-per-node 4 examples/dlrm/train.py --criteo train.txt

Each rank owns a part of the rows. They are looked up, pooled and updated by ina's services; the
gradients of the two MLPs are summed by the P4 program in the network.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from data import Clicks, generated, of_criteo
from model import DIM, TABLES, Dense
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import ina.torch


def parse_arguments() -> argparse.Namespace:
    """The command line; --help explains it."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--batch", type=int, default=256, help="samples a rank and step")
    parser.add_argument("--rows", type=int, default=20_000, help="of each of the 26 tables")
    parser.add_argument("--criteo", type=Path, help="a file of Criteo's format; else generated")
    parser.add_argument("--rate", type=float, default=0.1, help="of the embeddings' Adagrad")
    return parser.parse_args()


def batches(arguments: argparse.Namespace, rank: int) -> Iterator[Clicks]:
    """This rank's, as many as there are steps."""
    if arguments.criteo:
        ranks = dist.get_world_size()
        own = of_criteo(arguments.criteo, rank, ranks, arguments.batch, arguments.rows)
    else:
        own = generated(rank, arguments.batch, arguments.rows)
    return itertools.islice(own, arguments.steps)


def main() -> None:
    """One rank."""
    arguments = parse_arguments()
    dist.init_process_group("ina")
    rank = dist.get_rank()
    torch.manual_seed(1)
    names = [f"c{i + 1}" for i in range(TABLES)]
    tables = [ina.torch.Table(name, arguments.rows, DIM) for name in names]
    embeddings = ina.torch.EmbeddingBags(tables)
    dense = DistributedDataParallel(Dense())
    optimizers = [
        embeddings.optimizer("rowwise_adagrad", lr=arguments.rate),
        torch.optim.Adam(dense.parameters(), lr=1e-3),
    ]
    started = time.monotonic()
    losses = []
    for step, clicks in enumerate(batches(arguments, rank), start=1):
        vectors = embeddings({name: clicks.ids[i][:, None] for i, name in enumerate(names)})
        logits = dense(clicks.dense, torch.stack([vectors[name] for name in names], dim=1))
        loss = functional.binary_cross_entropy_with_logits(logits, clicks.labels)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        for optimizer in optimizers:
            optimizer.step()
        losses.append(loss.detach())
        if step % 50 == 0 or step == arguments.steps:
            mean = torch.stack(losses).mean()
            dist.all_reduce(mean)
            losses.clear()
            if rank == 0:
                seconds = time.monotonic() - started
                mean /= dist.get_world_size()
                print(f"step {step}: loss {mean:.4f}, {step / seconds:.1f} steps/s", flush=True)
    traffic = embeddings.service.native.traffic
    if rank == 0:
        print(f"rank 0 sent {traffic.sent_bytes / 1e6:.1f} MB of look-ups, rows and gradients")
    embeddings.close()
    dist.destroy_process_group()


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
