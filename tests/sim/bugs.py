"""Bugs put into what ships, one at a time, and how many seeds of ``ina sim fuzz`` find each.

``python -m tests.sim.bugs`` copies the sources, puts a bug in, compiles what has to be compiled,
and fuzzes. Each is a line or two that somebody might write. Those of the P4 program are changes of
its compiled JSON, as in tests/conformance/mutants.py, so that no p4c is needed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.mutants import action, last_digest, nodes, stale_takes, swap_first_values
from tests.lines import ROOT
from tests.sim.block_bugs import BLOCK_BUGS
from tests.sim.bug import Bug
from tests.sim.nic_bugs import NIC_BUGS
from tests.sim.number_bugs import NUMBER_BUGS
from tests.sim.packed_bugs import PACKED_BUGS
from tests.sim.resize_bugs import RESIZE_BUGS
from tests.sim.shape_bugs import SHAPE_BUGS
from tests.sim.shared_bugs import SHARED_BUGS
from tests.sim.stream_bugs import STREAM_BUGS
from tests.sim.tree_bugs import TREE_BUGS

MOST_SEEDS = 1000
SLOW_SEEDS = 300
"""For bugs that should break no promise."""
TIME_S = 1800.0


def _joins_twice(program: dict[str, Any]) -> None:
    """A worker that is in the round already joins it again."""
    for node in nodes(program["pipelines"]):
        if node.get("op") == "==" and "ina_metadata_t.worker_bit" in json.dumps(node):
            node["op"] = ">="


def _never_replays(program: dict[str, Any]) -> None:
    """A finished sum goes to nobody who asks again."""
    for node in nodes(action(program, "distribute.to_sender")):
        if node.get("type") == "field" and node["value"][1] == "ingress_port":
            node["type"], node["value"] = "hexstr", "0x01ff"  # v1model's port that drops


def _forgets_epoch(program: dict[str, Any]) -> None:
    """A slot does not become its new owner's."""
    for node in nodes(action(program, "slots.own_epoch")):
        if node.get("op") == "register_write":
            node["parameters"][2] = {"type": "hexstr", "value": "0x00000001"}


BUGS = (
    # The P4 program.
    Bug("p4: an older chunk takes the slot over", change=stale_takes),
    Bug("p4: a repeat is summed again", change=_joins_twice),
    Bug("p4: no replay", change=_never_replays),
    Bug("p4: the slot's epoch stays", change=_forgets_epoch),
    Bug("p4: two values of the first packet are swapped", change=swap_first_values),
    Bug("p4: digests are not added", change=last_digest),
    # WorkerCore and loss recovery.
    Bug(
        "core: any result of the lane is taken",
        "native/host/core/worker_core.cpp",
        "if (lane.is_waiting() && header.seq == lane.seq) return &lane;",
        "if (lane.is_waiting()) return &lane;",
    ),
    Bug(
        "core: the other worker's epoch is taken",
        "native/host/core/worker_core.cpp",
        "header.job != tree_.job || header.epoch != static_cast<std::uint16_t>(config_.epoch) ||",
        "header.job != tree_.job ||",
    ),
    Bug(
        "core: one version of each slot",
        "native/host/core/tree.hpp",
        "lane + ((seq & window) != 0 ? tree.lanes : 0)",
        "lane + ((seq & window) != 0 ? 0 : 0)",
    ),
    Bug(
        "core: a wrong guess counts",
        "native/host/core/chunk_codec.cpp",
        "return header.next_exponent == lane.exponent ||",
        "return header.next_exponent >= lane.exponent ||",
    ),
    Bug(
        "core: the scale leaves no room for a carry",
        "native/host/core/codec.cpp",
        "is_float(block.type) ? block_scale(block.exponent, block.summands) : 1.0f;",
        "is_float(block.type) ? block_scale(block.exponent, 1) : 1.0f;",
    ),
    Bug(
        "core: the next tensor's exponent outlives a guess",
        "native/host/core/worker_core.cpp",
        "const bool is_told = !was_guess && !config_.is_stream;",
        "const bool is_told = !config_.is_stream;",
    ),
    Bug(
        "core: a tensor's tail is not set to zero",
        "native/host/core/chunk_codec.cpp",
        "(values - filled) * wire::kValueBytes);",
        "0 * (values - filled) * wire::kValueBytes);",
    ),
    Bug(
        "recovery: what is sent again is no longer in flight",
        "native/host/recovery/loss_recovery.cpp",
        "    flights_.remove(lane);\n    flights_.add_newest(lane);\n",
        "    flights_.remove(lane);\n",
    ),
    # The plan of entries.
    Bug(
        "plan: the last worker is not in the group",
        "ina/controller/switches/plan.py",
        "for index in range(len(children))\n    )\n    group =",
        "for index in range(max(len(children) - 1, 1))\n    )\n    group =",
    ),
    Bug(
        "plan: members of a job are let in before its slots are its own",
        "ina/modes/rows.py",
        '("first_slot", at.memory.first),',
        '("first_slot", 0),',
    ),
    Bug(
        "plan: all receivers have the first one's port",
        "ina/controller/switches/plan.py",
        "receivers += mode.receivers(at, index, child)",
        "receivers += mode.receivers(at, index, children[0])",
    ),
    # Leases.
    Bug(
        "leases: who died lives on",
        "ina/controller/watch/leases.py",
        "if silent_s >= self.broken_s or now_s - lease.heard_s >= self.lease_s:",
        "if silent_s < 0:",
    ),
    Bug(
        "leases: a stream that broke ends it at once",
        "ina/controller/watch/leases.py",
        "self.broken_s = min(lease_s, max(BROKEN_S, 1.5 * self.heartbeat_s))",
        "self.broken_s = 0.0",
    ),
    # The store, and what is made of it.
    Bug(
        "store: who is no longer primary may write",
        "ina/controller/store/database.py",
        'raise FencedError(f"store {self.store.name}: {holder.name} has claimed it")',
        "pass",
    ),
    Bug(
        "store: the last epoch is not kept",
        "ina/controller/store/rows.py",
        '" ON CONFLICT (one) DO UPDATE SET epoch = excluded.epoch",\n        (last,),',
        '" ON CONFLICT (one) DO NOTHING",\n        (last,),',
    ),
    Bug(
        "store: a job's state is that of its first day",
        "ina/controller/store/rows.py",
        "DO UPDATE SET name = excluded.name, state = excluded.state,",
        "DO UPDATE SET name = excluded.name,",
    ),
    Bug(
        "reconcile: what is missing after a restart stays so",
        "ina/controller/switches/reconcile.py",
        "difference.missing.setdefault(number, []).append(item)",
        "difference.missing.setdefault(number, [])",
    ),
    Bug(
        "reconcile: what a job no longer wants stays",
        "ina/controller/switches/reconcile.py",
        "        elif _key(item) not in keys:\n            difference.extra.append(item)\n",
        "",
    ),
    *TREE_BUGS,
    *SHARED_BUGS,
    *RESIZE_BUGS,
    *NUMBER_BUGS,
    *SHAPE_BUGS,
    *PACKED_BUGS,
    *BLOCK_BUGS,
    *STREAM_BUGS,
    *NIC_BUGS,
)


def copy_to(folder: Path) -> Path:
    """The sources that a bug is put into. Of those of the bug before, only its file is another."""
    root = folder / "tree"
    wanted = {Path("CMakeLists.txt"), Path("pyproject.toml")}
    for name in ("ina", "native", "examples"):
        wanted |= {path.relative_to(ROOT) for path in (ROOT / name).rglob("*") if _is_source(path)}
    for path in root.rglob("*"):
        if _is_source(path) and path.relative_to(root) not in wanted:
            path.unlink()
    for place in sorted(wanted):
        source, copy = (ROOT / place).read_bytes(), root / place
        if not copy.exists() or copy.read_bytes() != source:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(source)  # with a new time: it is compiled again
    return root


def _is_source(path: Path) -> bool:
    return path.is_file() and path.suffix != ".so" and "__pycache__" not in path.parts


def find_extension() -> Path:
    """The one that is installed here, for bugs that are not in it."""
    spec = importlib.util.find_spec("ina._native")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


def compile_in(root: Path, build: Path) -> None:
    """Builds the extension from ``root`` into it; ``build`` is kept for the next time."""
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    for command in (
        ["cmake", "-S", str(root), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
         f"-DPython_EXECUTABLE={sys.executable}", f"-Dnanobind_DIR={nanobind}"],
        ["ninja", "-C", str(build)],
    ):  # fmt: skip
        subprocess.run(
            command, check=True, env={**os.environ, "PATH": path}, stdout=subprocess.DEVNULL
        )
    for library in build.glob("_native*.so"):
        shutil.copy2(library, root / "ina")


_FUZZ = """\
import json, sys
sys.path[:0] = [{root!r}, {site!r}]
from ina.sim.draw import draw
from ina.sim.fuzz import try_scenario
found, seed, tried = [], {first}, 0
while not found and tried < {seeds}:
    scenario = draw(seed)
    kinds = [fault.what for fault in scenario.fault]
    if {mode!r} in ("", scenario.switch.mode) and {fault!r} in ("", *kinds):
        tried += 1
        found = [(one.kind, one.what) for one in try_scenario(scenario, seed).violations]
    seed += 1
print(json.dumps(dict(tried=tried, found=found[:1])))
"""


@dataclass(frozen=True)
class Tried:
    """What the fuzzer found."""

    seeds: int
    """That it tried, with the one that failed."""
    what: str
    """Which promise is broken, and how; empty: none is."""


def fuzz_in(root: Path, seeds: int, *, first: int = 0, mode: str = "", fault: str = "") -> Tried:
    """Tries seeds as ``ina sim fuzz`` does, with what is in ``root``, until one fails.

    ``mode``: only those whose switches run this one's program; ``fault``: that have one of this
    kind.
    """
    # -S: an editable install's finder would bring in the checkout's own ina.
    site = next(path for path in sys.path if path.endswith("site-packages"))
    script = root / "fuzz_it.py"
    what = {"first": first, "seeds": seeds, "mode": mode, "fault": fault}
    script.write_text(_FUZZ.format(root=str(root), site=site, **what))
    done = subprocess.run(
        [sys.executable, "-S", str(script)], capture_output=True, text=True, timeout=TIME_S,
        cwd=root, env={**os.environ, "TORCH_DEVICE_BACKEND_AUTOLOAD": "0"},
    )  # fmt: skip
    if done.returncode:
        return Tried(seeds, f"crash: {done.stderr.strip()[-300:]}")
    answer = json.loads(done.stdout)
    return Tried(answer["tried"], "; ".join(": ".join(one) for one in answer["found"]))


def try_bugs(bugs: Iterable[Bug], folder: Path) -> int:
    """A line for each; returns how many were not found."""
    missed = 0
    for bug in bugs:
        root = copy_to(folder)
        bug.put_into(root)
        if bug.is_native:
            compile_in(root, folder / "build")
        else:
            shutil.copy2(find_extension(), root / "ina")
        seeds = SLOW_SEEDS if bug.slows else MOST_SEEDS
        tried = fuzz_in(root, seeds, mode=bug.seen_in, fault=bug.seen_with)
        if tried.what:
            print(f"{bug.name}: {tried.seeds} seeds: {tried.what[:130]}")
        elif bug.slows:
            print(f"{bug.name}: mended, in {tried.seeds} seeds")
        else:
            missed += 1
            print(f"{bug.name}: NOT FOUND in {tried.seeds} seeds")
        sys.stdout.flush()
    return missed


if __name__ == "__main__":
    chosen = [bug for bug in BUGS if all(word in bug.name for word in sys.argv[1:])]
    sys.exit(try_bugs(chosen, Path(os.environ.get("INA_BUGS", "out/sim/bugs")).resolve()) > 0)
