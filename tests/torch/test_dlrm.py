"""The DLRM of examples/dlrm: it reads Criteo's lines, and learns. docs/embeddings.md runs it."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.lines import ROOT

FOLDER = ROOT / "examples" / "dlrm"


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    spec = importlib.util.spec_from_file_location("dlrm_data", FOLDER / "data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "dlrm_data", module)  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


def line(label: int, integer: str, key: str) -> str:
    return "\t".join([str(label), integer, *["1"] * 12, key, *["0000000a"] * 25])


def test_each_rank_reads_its_lines_of_criteos_format(data: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text("\n".join([line(1, "", "ff"), line(0, "-2", ""), line(1, "7", "10")]) + "\n")
    (first,) = data.of_criteo(path, 0, 2, 8, 100)
    (second,) = data.of_criteo(path, 1, 2, 8, 100)
    assert first.labels.tolist() == [1, 1]
    assert first.ids.shape == (26, 2)
    assert first.ids[0].tolist() == [55, 16]
    assert torch.allclose(first.dense[:, 0], torch.tensor([0.0, 8.0]).clamp(min=1).log())
    assert second.ids[0].tolist() == [0]
    assert second.dense[0, 0] == 0


def test_a_line_of_another_format_is_named(data: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "train.txt"
    path.write_text(line(1, "", "ff") + "\n1\t2\n")
    with pytest.raises(ValueError, match=r"train\.txt:2: 2 columns: want 40"):
        list(data.of_criteo(path, 0, 1, 8, 100))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_it_learns() -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    ran = subprocess.run(
        [*command, str(FOLDER / "train.py"), "--rows", "2000", "--steps", "200"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    losses = [float(one) for one in re.findall(r"loss ([\d.]+)", ran.stdout)]
    assert len(losses) == 4
    assert losses[-1] < losses[0] - 0.05
