"""Train a small CNN on scikit-learn's 8x8 digits with DDP.

    torchrun --nproc-per-node 4 examples/ddp_digits.py --backend ina
    torchrun --nproc-per-node 4 examples/ddp_digits.py --backend gloo

Nothing else has to run: with backend ina, rank 0 starts an embedded controller and soft switch, and
the gradients are summed by the P4 program in it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
from pathlib import Path

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import ina.torch  # noqa: F401 - registers backend "ina"


class DigitsNet(nn.Module):
    """Two convolutions, two linear layers: 152 k parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1)
        self.linear1 = nn.Linear(64 * 4 * 4, 128)
        self.linear2 = nn.Linear(128, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Images of shape (n, 1, 8, 8) to logits of shape (n, 10)."""
        x = functional.relu(self.conv1(images))
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.linear1(x.flatten(1)))
        logits: torch.Tensor = self.linear2(x)
        return logits


def parse_arguments() -> argparse.Namespace:
    """The command line; --help explains it."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", default="ina", help="ina or gloo")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--batch", type=int, default=32, help="images a worker and step")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--result", type=Path, help="write losses, accuracy and parameters here")
    return parser.parse_args()


def load_data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Training images and labels, test images and labels; one image in five is for the test."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16.0
    labels = torch.tensor(digits.target)
    is_test = torch.arange(len(labels)) % 5 == 0
    return images[~is_test], labels[~is_test], images[is_test], labels[is_test]


@torch.no_grad()
def accuracy(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    """Share of the images that the model names correctly."""
    return float((model(images).argmax(1) == labels).float().mean())


def main() -> None:
    """One worker, from its arguments to its result."""
    arguments = parse_arguments()
    torch.set_num_threads(1)
    dist.init_process_group(arguments.backend)
    rank, workers = dist.get_rank(), dist.get_world_size()

    images, labels, test_images, test_labels = load_data()
    torch.manual_seed(arguments.seed)  # the same initial parameters on every rank
    net = DigitsNet()
    # Small buckets, so that the first gradients travel while the others are being computed.
    model = DistributedDataParallel(net, bucket_cap_mb=0.25)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    steps = len(labels) // (arguments.batch * workers)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, arguments.epochs * steps)

    losses, accuracies = [], []
    for epoch in range(1, arguments.epochs + 1):
        shuffle = torch.Generator().manual_seed(1000 * arguments.seed + epoch)
        order = torch.randperm(len(labels), generator=shuffle)
        for step in range(steps):
            first = (step * workers + rank) * arguments.batch
            batch = order[first : first + arguments.batch]
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images[batch]), labels[batch])
            torch.autograd.backward(loss)  # DDP sums the gradients over the workers here
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
        accuracies.append(accuracy(net, test_images, test_labels))
        if rank == 0:
            mean_loss = sum(losses[-steps:]) / steps
            print(
                f"epoch {epoch}/{arguments.epochs}: loss {mean_loss:.4f},"
                f" test accuracy {100 * accuracies[-1]:.2f} %",
                flush=True,
            )

    if arguments.result is not None and rank == 0:
        write_result(arguments.result, net, losses, accuracies)
    dist.destroy_process_group()


def write_result(path: Path, net: nn.Module, losses: list[float], accuracies: list[float]) -> None:
    """Rank 0's losses by step, accuracies by epoch, and the parameters beside it as raw float32."""
    parameters = torch.cat([parameter.detach().flatten() for parameter in net.parameters()])
    result = {
        "losses": losses,
        "accuracies": accuracies,
        "parameters": parameters.numel(),
        "parameters_sha256": hashlib.sha256(parameters.numpy().tobytes()).hexdigest(),
        "parameters_file": os.fspath(path.with_suffix(".f32").absolute()),
    }
    path.with_suffix(".f32").write_bytes(parameters.numpy().tobytes())
    path.write_text(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
