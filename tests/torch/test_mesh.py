"""DeviceMesh, DTensor, FSDP2 on two dimensions, object collectives, sub-groups."""

from __future__ import annotations

from pathlib import Path

from tests.torch import model_cases
from tests.worlds.processes.launch import launch


def test_mesh_and_objects(tmp_path: Path) -> None:
    said = launch(model_cases.mesh_and_objects, 4, tmp_path / "w", environ={"INA_JOB": "mesh"})
    # ranks 0 1 / 2 3: a job for each row and for each column
    rows = [one["jobs"]["shard"] for one in said]
    columns = [one["jobs"]["replica"] for one in said]
    assert rows[0] == rows[1] != rows[2] == rows[3]
    assert columns[0] == columns[2] != columns[1] == columns[3]
    assert len({*rows, *columns}) == 4
    assert all(name.startswith("mesh/") for name in (*rows, *columns))
    for one in said:
        assert one["scattered"] >= 4  # two steps, two policies
        assert one["replicas"] >= 1 + 4  # FSDP2 sums the shards of the replicas
        assert one["fallbacks"] == 0
