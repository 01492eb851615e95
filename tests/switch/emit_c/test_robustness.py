"""Random bytes never crash generated code: in process, and under the sanitizers."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from fuzz.programs.batch import NOT_INLINED, with_prefix
from ina.p4 import compiled
from ina.switch.c_target.cache import INCLUDES
from ina.switch.emit_c.emit import emit_c
from ina.switch.ir import load_program
from ina.switch.passes.plan import make_plan
from tests.selection import LONG
from tests.switch.emit_c.conftest import PROGRAMS, Load

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.json"))
DRIVER = Path(__file__).parent / "driver.c"
POOL_FRAMES = 20_000 if LONG else 5_000


def random_packets(seed: int, count: int, most_bytes: int) -> list[tuple[int, bytes]]:
    rng = random.Random(seed)
    return [
        (rng.randrange(512), rng.randbytes(rng.choice([0, 1, 2, rng.randrange(most_bytes)])))
        for _ in range(count)
    ]


@pytest.mark.parametrize("name", NAMES)
def test_random_packets_come_out_or_not(load: Load, name: str) -> None:
    pipeline = load(name)
    for group in range(1, 20):
        pipeline.set_multicast(group, [(1, 1), (2, 2)])
    packets = random_packets(1, 3000, 200)
    out = pipeline.process_batch(packets)
    assert len(out) <= 2 * len(packets)
    assert all(0 <= port < 512 for port, _ in out)
    pipeline.close()
    again = load(name)
    for group in range(1, 20):
        again.set_multicast(group, [(1, 1), (2, 2)])
    one_by_one = [p for port, data in packets for p in again.process(port, data)]
    if name != "replicate":  # which reports queue depths: a batch fills queues
        assert one_by_one == out


def pool_frames(values: int, count: int) -> bytes:
    """Contributions with a few bytes changed or cut off, as (port, length, bytes) records."""
    import numpy as np

    from ina.bench.pipeline_frames import Batch

    batch = Batch(values, 4, np.random.default_rng(0))
    batch.set_round(1)
    rng = random.Random(values)
    records = []
    for number in range(count):
        frame = bytearray(batch.frames[number % 8, number % 4].tobytes())
        for _ in range(rng.randrange(4)):
            frame[rng.randrange(70)] = rng.randrange(256)
        if rng.random() < 0.2:
            frame = frame[: rng.randrange(len(frame) + 1)]
        records.append(struct.pack("<II", number % 4 + 1, len(frame)) + frame)
    return b"".join(records)


FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g1", "-std=gnu11")
OPTIMISED = ("-O1",) if LONG else ("-O0", NOT_INLINED)
"""Without optimisation a sanitizer sees all that the C does, and compiling takes a fifth."""


@pytest.fixture(scope="module")
def cc(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A compiler that has both sanitizers."""
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("sanitizers")
    probe = folder / "probe.c"
    probe.write_text("int main(void) { return 0; }\n")
    linked = subprocess.run(
        [cc, *FLAGS, str(probe), "-o", str(folder / "probe")], capture_output=True, timeout=60
    )
    ran = linked.returncode == 0 and subprocess.run([str(folder / "probe")], timeout=60)
    if not ran or ran.returncode != 0:
        pytest.skip("this compiler cannot link or run -fsanitize=address,undefined")
    return cc


def headers() -> bytes:
    """What generated C and the driver include, and the driver."""
    folders = [Path(path) for path in INCLUDES if path != "-I"]
    found = sorted(path for folder in folders for path in folder.glob("*.h"))
    return b"".join(path.read_bytes() for path in [*found, DRIVER])


def in_one(programs: Sequence[Path]) -> str:
    """All in one file, whose ``ina_pipeline_get`` gives the one that $INA_PROGRAM names."""
    parts, choices = [], []
    for path in programs:
        source = emit_c(make_plan(load_program(path)), "test")
        parts.append(with_prefix(source, f"q_{path.stem}_"))
        choice = f'if (!strcmp(wanted, "{path.stem}")) return q_{path.stem}_ina_pipeline_get();'
        choices.append(choice)
    return "\n".join(
        [
            *parts,
            "const ina_pipeline *ina_pipeline_get(void);",
            "const ina_pipeline *ina_pipeline_get(void) {",
            'const char *const wanted = getenv("INA_PROGRAM");',
            *choices,
            "return NULL;",
            "}",
        ]
    )


def sanitized(cc: str, programs: Sequence[Path], cache_dir: Path) -> Path:
    """The driver with the programs' C in it, under both sanitizers; kept from run to run."""
    command = [cc, *FLAGS, *OPTIMISED, "-Wall", "-Wextra", "-Werror", *INCLUDES, "-pthread"]
    source = in_one(programs)
    version = subprocess.run([cc, "--version"], capture_output=True, timeout=60, check=True).stdout
    parts = [source.encode(), headers(), version, "\0".join(command).encode()]
    kept = cache_dir / "sanitized" / hashlib.sha256(b"\0".join(parts)).hexdigest()
    if kept.exists():
        return kept
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
        generated, made = Path(folder, "pipeline.c"), Path(folder, "driver")
        generated.write_text(source)
        built = subprocess.run(
            [*command, str(generated), str(DRIVER), "-o", str(made)],
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert built.returncode == 0, built.stderr[:2000]
        made.replace(kept)
    return kept


def complaint(driver: Path, program: str, records: bytes) -> str:
    """Of a sanitizer, or of the driver; empty: all went well."""
    done = subprocess.run(
        [str(driver)],
        input=records,
        capture_output=True,
        timeout=300,
        env={**os.environ, "INA_PROGRAM": program},
    )
    if done.returncode == 0 and b"packets" in done.stdout:
        return ""
    return f"{program}: exit code {done.returncode}: {done.stderr.decode()[:3000]}"


@pytest.mark.timeout(600)
def test_no_sanitizer_complains(cc: str, cache_dir: Path) -> None:
    """One test for all programs, which are compiled as one: what their headers share, once."""
    driver = sanitized(cc, [PROGRAMS / f"{name}.json" for name in NAMES], cache_dir)
    packets = random_packets(2, 2000, 200)
    records = b"".join(struct.pack("<II", port, len(d)) + d for port, d in packets)
    assert [it for name in NAMES if (it := complaint(driver, name, records))] == []


@pytest.mark.timeout(600)
def test_no_sanitizer_complains_of_the_pool(cc: str, cache_dir: Path) -> None:
    program = compiled(64).bmv2_json
    driver = sanitized(cc, [program], cache_dir)
    assert complaint(driver, program.stem, pool_frames(64, POOL_FRAMES)) == ""
