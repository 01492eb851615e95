"""PyTorch with mode stream, through the whole stack, with packets of 64 and of 1,024 values.

A sum that does not come fails as the group's timeout says (:func:`launch`), and says which.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.torch.stream_cases import all_sums
from tests.worlds.processes.launch import launch


@pytest.mark.parametrize(
    ("workers", "environ"),
    [
        pytest.param(2, {"INA_VALUES": "64"}, id="2, small packets"),
        *(
            pytest.param(workers, environ, marks=pytest.mark.long, id=name)
            for name, workers, environ in (
                ("2 over shared memory", 2, {}),
                ("2 over UDP", 2, {"INA_TRANSPORT": "udp"}),
                ("4 over UDP, with losses", 4, {"INA_TRANSPORT": "udp", "INA_LOSS_RATE": "0.02"}),
                ("4 over shared memory, with losses", 4, {"INA_LOSS_RATE": "0.02"}),
                ("4, few in flight", 4, {"INA_WINDOW": "fixed,packets=3"}),
                ("2, with 4 threads", 2, {"INA_TRANSPORT": "udp", "INA_THREADS": "4"}),
            )
        ),
    ],
)
def test_sums(workers: int, environ: dict[str, str], tmp_path: Path) -> None:
    outcomes = launch(all_sums, workers, tmp_path / "w", environ={"INA_MODE": "stream", **environ})
    assert [wrong for wrong, _, _ in outcomes] == [[]] * workers
    assert len({digest for _, digest, _ in outcomes}) == 1
    elems = sum(stats.network_elems for _, _, stats in outcomes) // workers
    for _, _, stats in outcomes:
        assert stats.fallbacks == 0
        # Of two of three densities some are left out, behind the lanes' first blocks.
        values = int(environ.get("INA_VALUES", "1024"))
        assert stats.session["chunks_done"] < 0.97 * elems / (values - 1)
