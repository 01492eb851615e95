"""Where ina is installed, torch knows backend "ina"; programs that never use it do not notice."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest
import torch.distributed as dist

import ina_torch_autoload as autoload
from ina.torch import devices

# What `import torch` has brought of ina, and set, for all programs; then a group without ina.torch.
_SCRIPT = """
import os, sys
import torch
ours = {"ina", "ina_torch_autoload", "grpc", "finsy"}
print(sorted(name for name in sys.modules if name.partition(".")[0] in ours))
assert "GRPC_ENABLE_FORK_SUPPORT" not in os.environ
import torch.distributed as dist
dist.init_process_group("ina", store=dist.HashStore(), rank=0, world_size=1)
tensor = torch.ones(3)
dist.all_reduce(tensor)
print(type(dist.group.WORLD).__name__, tensor.tolist())
dist.destroy_process_group()
"""


def _run(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    ours = ("INA_", "GRPC_ENABLE_FORK_SUPPORT")  # the latter is set by the tests' own conftest
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return subprocess.run(
        [sys.executable, "-c", script],
        env={**clean, **environ}, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip


def test_no_import_is_needed_and_little_is_imported() -> None:
    ran = _run(_SCRIPT)
    assert ran.returncode == 0, ran.stderr
    first, second = ran.stdout.splitlines()
    assert first == "['ina_torch_autoload']"
    assert second == "ProcessGroupIna [1.0, 1.0, 1.0]"


def test_the_installed_package_names_the_function() -> None:
    (found,) = (entry for entry in entry_points(group="torch.backends") if entry.name == "ina")
    assert found.load() is autoload.register


def test_it_is_registered_for_the_devices_of_the_real_one() -> None:
    assert dist.Backend.backend_capability["ina"] == autoload._DEVICES == devices.DEVICES


def test_a_torch_that_takes_no_backend_is_warned_of_and_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise TypeError("register_backend() takes no devices")

    monkeypatch.delattr(dist.Backend, "INA")
    monkeypatch.setattr(dist.Backend, "register_backend", refuse)
    with pytest.warns(UserWarning, match="takes no devices"):
        autoload.register()


def test_a_torch_without_distributed_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dist, "is_available", lambda: False)
    monkeypatch.delattr(dist, "Backend")
    autoload.register()
