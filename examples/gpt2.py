"""Train a small model of GPT-2's shape, from random weights, on the text of this very file.

    torchrun --nproc-per-node 2 examples/gpt2.py --way ddp
    torchrun --nproc-per-node 2 examples/gpt2.py --way hook --backend gloo
    torchrun --nproc-per-node 2 examples/gpt2.py --way fsdp2

`ddp` and `fsdp2` train with the process group of --backend; `hook` keeps it and sends the gradients
alone through the network.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import ina.torch

VOCABULARY = 256  # bytes
CONTEXT = 64


class Block(nn.Module):
    """Attention and a two-layer perceptron, each behind a layer norm and beside a residual."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.projection = nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """From and to shape (batch, tokens, width)."""
        batch, tokens, width = x.shape
        shape = (batch, tokens, self.heads, width // self.heads)
        q, k, v = (
            part.view(shape).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, dim=2)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.projection(mixed.transpose(1, 2).reshape(batch, tokens, width))
        hidden = functional.gelu(self.up(self.norm2(x)), approximate="tanh")
        out: torch.Tensor = x + self.down(hidden)
        return out


class GPT2(nn.Module):
    """GPT-2 with learned positions; the output weights are the token embedding's."""

    def __init__(self, layers: int = 2, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.positions = nn.Embedding(CONTEXT, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.apply(_initialise)

    def forward(self, text: torch.Tensor) -> torch.Tensor:
        """Tokens of shape (batch, n) to the cross entropy of each next one, a number."""
        inputs, targets = text[:, :-1], text[:, 1:]
        x = self.tokens(inputs) + self.positions(torch.arange(inputs.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _initialise(module: nn.Module) -> None:
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)


def train(way: str, steps: int, *, seed: int = 1, batch: int = 4) -> list[float]:
    """Train over the default process group; return the loss of each step, averaged over ranks.

    ``way``: "ddp", "hook" or "fsdp2".
    """
    torch.manual_seed(seed)  # the same initial parameters on every rank
    net = GPT2()
    if way == "fsdp2":
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        for block in net.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(net, mesh=mesh)
    model = net if way == "fsdp2" else DistributedDataParallel(net, bucket_cap_mb=0.2)
    if way == "hook":
        assert isinstance(model, DistributedDataParallel)
        model.register_comm_hook(ina.torch.HookState(), ina.torch.allreduce_hook)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    text = torch.tensor(list(Path(__file__).read_bytes()))
    generator = torch.Generator().manual_seed(100 * seed + dist.get_rank())
    losses = []
    for _ in range(steps):
        starts = torch.randint(len(text) - CONTEXT, (batch,), generator=generator)
        rows = torch.stack([text[start : start + CONTEXT] for start in starts.tolist()])
        loss = model(rows)
        torch.autograd.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        mean = loss.detach()
        dist.all_reduce(mean, dist.ReduceOp.AVG)
        losses.append(mean.item())
    return losses


def main() -> None:
    """One worker, from its arguments to its result."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--way", choices=("ddp", "hook", "fsdp2"), default="ddp")
    parser.add_argument("--backend", default="ina", help="ina or gloo")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group(arguments.backend)
    losses = train(arguments.way, arguments.steps)
    if dist.get_rank() == 0:
        for step in range(0, len(losses), 5):
            print(f"step {step + 1}: loss {losses[step]:.4f}")
        print(f"step {len(losses)}: loss {losses[-1]:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
