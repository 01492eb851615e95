"""The demo model on hosts with links of 100 Mbit/s: the same bits, whatever the switch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.selection import LONG
from tests.worlds.processes.emulations import call, left, need, new_name, star

pytest.importorskip("torch")
pytest.importorskip("sklearn")
SCRIPT = Path(__file__).parent.parent.parent / "examples" / "ddp_digits.py"
HOSTS = 4 if LONG else 2


def train(folder: Path, kind: str, link: str = "") -> bytes:
    """One epoch; returns rank 0's parameters."""
    name = new_name()
    out = folder / name
    file = star(folder, HOSTS, link=f"bandwidth_mbit = 100\n{link}")
    done = call(
        *("run", file, "--switch", kind, "--name", name, "--out", out, "--timeout-s", "250"),
        *("--", "torchrun", SCRIPT, "--epochs", "1", "--result", folder / "result.json"),
    )
    assert done.returncode == 0, done.stderr
    assert "epoch 1/1: loss " in done.stdout
    assert left(name) == {}
    for rank in range(HOSTS):
        stats = json.loads((out / f"group0.rank{rank}.json").read_text())
        assert stats["network_all_reduces"] > 20
        assert stats["fallbacks"] == 0
    return (folder / "result.f32").read_bytes()


@pytest.fixture(scope="module")
def soft(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    need("soft")
    return train(tmp_path_factory.mktemp("soft"), "soft")


@pytest.mark.bmv2
@pytest.mark.timeout(600)
def test_bmv2_trains_the_same_parameters(soft: bytes, tmp_path: Path) -> None:
    need("bmv2")
    assert train(tmp_path, "bmv2") == soft


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_kernel_trains_the_same_parameters(soft: bytes, tmp_path: Path) -> None:
    need("xdp")
    assert train(tmp_path, "xdp") == soft


@pytest.mark.long
@pytest.mark.timeout(600)
def test_the_kernel_trains_the_same_parameters_with_losses(soft: bytes, tmp_path: Path) -> None:
    need("xdp")
    assert train(tmp_path, "xdp", "loss_rate = 0.01") == soft


@pytest.mark.long  # make test: tests/torch/test_demo.py, on loopback
@pytest.mark.timeout(600)
def test_lossy_links_change_nothing(soft: bytes, tmp_path: Path) -> None:
    assert train(tmp_path, "soft", "loss_rate = 0.01") == soft
