"""A GPT-2-shaped model trains as with Gloo: DDP, the hook over Gloo, FSDP2."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.torch import model_cases
from tests.worlds.processes.launch import launch
from tests.worlds.processes.stand_ins import python


def test_losses_are_those_of_gloo(tmp_path: Path) -> None:
    ours = launch(model_cases.losses, 2, tmp_path / "ina")
    gloo = launch(model_cases.losses, 2, tmp_path / "gloo", backend="gloo")
    assert ours[0] == ours[1]
    wanted = gloo[0]["ddp"]
    assert len(wanted) == 20
    assert wanted[-1] < wanted[0] - 1  # it learns
    for name, losses in {**ours[0], "hook": gloo[0]["hook"]}.items():
        worst = max(abs(a - b) for a, b in zip(losses, wanted, strict=True))
        assert worst < 1e-3, (name, worst)


def test_the_script_ends_without_a_word_too_many(tmp_path: Path) -> None:
    """FSDP2 keeps its group, and so the session, alive to the end."""
    ran = subprocess.run(
        [python(), "-m", "torch.distributed.run", "--nproc-per-node", "1",
         model_cases.EXAMPLES / "gpt2.py", "--way", "fsdp2", "--steps", "2"],
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert [line.partition(":")[0] for line in ran.stdout.splitlines()] == ["step 1", "step 2"]
    assert "leaked" not in ran.stderr
