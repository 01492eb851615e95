"""Random bytes never crash generated code: in process, and under the sanitizers."""

from __future__ import annotations

import functools
import hashlib
import random
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest

from ina.p4 import compiled
from ina.switch.c_target.cache import INCLUDES
from ina.switch.emit_c.emit import emit_c
from ina.switch.ir import load_program
from ina.switch.passes.plan import make_plan
from tests.switch.emit_c.conftest import PROGRAMS, Load

NAMES = sorted(path.stem for path in PROGRAMS.glob("*.json"))
DRIVER = Path(__file__).parent / "driver.c"


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

    from ina.bench.pipeline import Batch

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


FLAGS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-O1", "-std=gnu11")


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


@functools.cache
def headers() -> bytes:
    """What generated C and the driver include, and the driver."""
    folders = [Path(path) for path in INCLUDES if path != "-I"]
    found = sorted(path for folder in folders for path in folder.glob("*.h"))
    return b"".join(path.read_bytes() for path in [*found, DRIVER])


def sanitized(cc: str, program: Path, cache_dir: Path) -> Path:
    """The driver with the program's C in it, under both sanitizers; kept from run to run."""
    command = [cc, *FLAGS, "-Wall", "-Wextra", "-Werror", *INCLUDES, "-pthread"]
    source = emit_c(make_plan(load_program(program)), "test")
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


def run(program: Path, records: bytes) -> None:
    done = subprocess.run([str(program)], input=records, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr.decode()[:3000]
    assert b"packets" in done.stdout


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_no_sanitizer_complains(name: str, cc: str, cache_dir: Path) -> None:
    program = sanitized(cc, PROGRAMS / f"{name}.json", cache_dir)
    packets = random_packets(2, 2000, 200)
    run(program, b"".join(struct.pack("<II", port, len(d)) + d for port, d in packets))


@pytest.mark.timeout(600)
def test_no_sanitizer_complains_of_the_pool(cc: str, cache_dir: Path) -> None:
    program = sanitized(cc, compiled(64).bmv2_json, cache_dir)
    run(program, pool_frames(64, 20_000))
