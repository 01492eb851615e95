"""Shows that an installed ina works: ``python tools/try_install.py PYTHON [--torch] [--demo]``.

PYTHON is the interpreter of an environment that has ina installed. Everything runs with it in an
empty folder, so nothing of this checkout can be imported by chance. Prints a line for each thing
that works; exits with 1 and says which command failed otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COMMAND_S = 300.0
"""The first start compiles the P4 program, on a machine that may be busy."""

WORKER = """
import sys

import numpy as np

from ina.host import Session

with Session.join(sys.argv[1], "try", int(sys.argv[2]), world_size=2) as session:
    print(session.all_reduce(np.full(1000, 1.5, np.float32)).sum())
"""
TRAIN = """
import torch
import torch.distributed as dist

import ina.torch

dist.init_process_group("ina")
tensor = torch.full((1000,), float(dist.get_rank() + 1))
dist.all_reduce(tensor)
if dist.get_rank() == 0:
    print(f"sum {tensor[0].item():g}, {dist.get_backend()}")
dist.destroy_process_group()
"""


class FailedError(Exception):
    """A command did not do what it should; the message has all that it printed."""


class Installed:
    """The environment under test, and an empty folder to work in."""

    def __init__(self, python: Path, folder: Path) -> None:
        self.python = python
        self.folder = folder
        self.bin = python.parent
        self.servers = 0
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "INA_"))},
            "PATH": f"{self.bin}:{os.environ['PATH']}",
        }

    def run(self, *command: str | Path, exits: int = 0, **environ: str) -> str:
        """What the command printed on stdout; raises FailedError unless it exits with `exits`."""
        ran = subprocess.run(
            [self.bin / command[0], *command[1:]], cwd=self.folder, timeout=COMMAND_S, text=True,
            env={**self.environ, **environ}, stdin=subprocess.DEVNULL, capture_output=True,
        )  # fmt: skip
        if ran.returncode != exits:
            said = f"exit code {ran.returncode}, not {exits}\n{ran.stdout}{ran.stderr}"
            raise FailedError(f"{' '.join(map(str, command))}: {said}")
        return ran.stdout

    @contextmanager
    def serving(self, *command: str | Path) -> Iterator[dict[str, Any]]:
        """Run a server with ``--json`` until the block ends; gives its ready line."""
        self.servers += 1
        log = self.folder / f"server{self.servers}.log"
        with log.open("w") as stderr:
            server = subprocess.Popen(
                [self.bin / command[0], *command[1:], "--json"], cwd=self.folder, text=True,
                env=self.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr,
            )  # fmt: skip
        try:
            assert server.stdout is not None
            ready = server.stdout.readline()
            if not ready:
                said = f"ended with {server.wait()}\n{log.read_text()}"
                raise FailedError(f"{' '.join(map(str, command))}: {said}")
            yield json.loads(ready)
        finally:
            server.terminate()
            server.communicate(timeout=COMMAND_S)

    def sums(self, controller: str) -> None:
        """Two workers sum at `controller`."""
        worker = self.folder / "worker.py"
        worker.write_text(WORKER)
        other = subprocess.Popen(
            [self.python, worker, controller, "1"], cwd=self.folder, env=self.environ,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        try:
            said = [self.run("python", worker, controller, "0"), other.communicate(None, 60.0)[0]]
        finally:
            other.kill()
            other.wait()
        if said != ["3000.0\n", "3000.0\n"]:
            raise FailedError(f"two workers at {controller} printed {said}")


def imported(it: Installed) -> str:
    """Which ina it is."""
    code = "import ina, ina._native, sys; print(ina.__file__, sys.prefix, ina.__version__)"
    where, prefix, version = it.run("python", "-c", code).split()
    said = it.run("ina", "--version")
    if not Path(where).is_relative_to(prefix) or said != f"ina {version}\n":
        raise FailedError(f"imported {version} from {where}, not from {prefix}; ina says {said}")
    return f"{said.strip()}, {where}"


def doctor(it: Installed) -> str:
    """It finds all it needs; and without a C compiler says so."""
    it.run("ina", "doctor", "--embedded")
    found = json.loads(it.run("ina", "doctor", "--json", exits=1, PATH=str(it.bin)))
    missing = [row["name"] for row in found["machine"] if row["verdict"] == "MISSING"]
    if missing != ["C compiler"]:
        raise FailedError(f"ina doctor without a compiler: {missing} missing")
    return "ina doctor --embedded; without a C compiler it says so"


def files(it: Installed) -> str:
    """All that ships is put out, and the emulator takes a topology of it."""
    written = json.loads(it.run("ina", "files", "out", "--json"))["written"]
    it.run("ina", "emulate", "check", "out/examples/topologies/star4.toml")
    return f"ina files: {len(written)} files"


def in_one_process(it: Installed) -> str:
    """A controller with its switch, and a job."""
    command = ("ina", "controller", "run", "--embedded-switch", "--listen", "127.0.0.1:0")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    config = it.folder / "one.toml"
    config.write_text(f"[switch]\ndata_udp_port = {port}\n")
    with it.serving(*command, config) as ready:
        it.sums(ready["controller"])
    return "controller with embedded switch: two workers summed"


def apart(it: Installed) -> str:
    """A switch, a controller, and a job."""
    switch = ("ina", "switch", "--grpc-addr", "127.0.0.1:0", "--port", "1=udp:127.0.0.1:0")
    with it.serving(*switch) as ready:
        port = ready["ports"]["1"].rpartition(":")[2]
        config = it.folder / "controller.toml"
        config.write_text(f'[switch]\ngrpc_addr = "{ready["grpc_addr"]}"\ndata_udp_port = {port}\n')
        command = ("ina", "controller", "run", "--listen", "127.0.0.1:0", config)
        with it.serving(*command) as controller:
            it.sums(controller["controller"])
    return "switch and controller apart: two workers summed"


def conformance(it: Installed) -> str:
    """The soft switch does what the reference model does."""
    out = it.run("ina", "test", "conformance", "--values", "64")
    return out.splitlines()[-1].strip()


def torch_job(it: Installed) -> str:
    """A PyTorch job that brings its own controller and switch."""
    (it.folder / "train.py").write_text(TRAIN)
    out = it.run(
        *("python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"),
        "train.py", OMP_NUM_THREADS="1",
    )  # fmt: skip
    if "sum 3, ina" not in out:
        raise FailedError(f"torchrun train.py printed {out!r}")
    return "torchrun: a PyTorch job with an embedded controller summed"


def demo(it: Installed) -> str:
    """A short training through P4, and with Gloo."""
    out = it.run("ina", "demo", "--workers", "2", "--epochs", "2", "--json")
    report = json.loads(out)
    return f"ina demo: {report['results']} sums completed in P4"


def checks(with_torch: bool, with_demo: bool) -> list[Callable[[Installed], str]]:
    """In order."""
    chosen: list[Callable[[Installed], str]] = [
        imported,
        doctor,
        files,
        in_one_process,
        apart,
        conformance,
    ]
    return chosen + [torch_job] * with_torch + [demo] * with_demo


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Try an installed ina.")
    parser.add_argument("python", type=Path, help="interpreter of the environment")
    parser.add_argument("--torch", action="store_true", help="also a PyTorch job")
    parser.add_argument("--demo", action="store_true", help="also a short ina demo")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ina-try-") as folder:
        installed = Installed(args.python.absolute(), Path(folder))
        for check in checks(args.torch, args.demo):
            try:
                print(f"ok: {check(installed)}", flush=True)
            except (FailedError, subprocess.TimeoutExpired) as error:
                print(f"FAILED: {check.__name__}: {error}", file=sys.stderr)
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
