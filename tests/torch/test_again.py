"""One process, several groups after each other: in scripts, notebooks and tests of one's own."""

from __future__ import annotations

import os
import socket
import subprocess

from tests.worlds.processes.stand_ins import python

WORKERS = 3

# Without torchrun: the store is a server in rank 0. Freeing the old group at once, as a garbage
# collection may, must not take it from ranks that are already at the next one.
SCRIPT = """
import gc
import torch
import torch.distributed as dist
for _ in range(3):
    dist.init_process_group("ina")
    tensor = torch.ones(10)
    dist.all_reduce(tensor)
    print(tensor[0].item())
    dist.destroy_process_group()
    gc.collect()
"""


def test_a_second_group_does_not_find_the_first_ones_controller() -> None:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("INA_")}
    with socket.create_server(("127.0.0.1", 0)) as free:
        where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    ranks = [
        subprocess.Popen(
            [python(), "-c", SCRIPT],
            env={**ours, **where, "RANK": str(rank), "WORLD_SIZE": str(WORKERS)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(WORKERS)
    ]
    try:
        for rank in ranks:
            said, complaints = rank.communicate(timeout=100)
            assert rank.returncode == 0, complaints
            assert said.split() == ["3.0"] * 3
    finally:
        for rank in ranks:
            rank.kill()
            rank.wait(10)
