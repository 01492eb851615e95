"""Writes the corpora's examples, or says which are not what this makes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from fuzz.registry import DOORS, Door
from fuzz.seeds import files, memory, messages, packets
from fuzz.seeds.packets import Examples

PREFIX = "seed-"
"""Of an example. Others have been found by fuzzing, and are nobody's to write anew."""

EXAMPLES = {
    "frame": packets.frame_inputs,
    "offload": packets.offload_inputs,
    "udp_port": packets.datagram_inputs,
    "pipeline": packets.pipeline_inputs,
    "pcap_file": packets.pcap_inputs,
    "shm_switch": memory.shm_switch_inputs,
    "shm_worker": memory.shm_worker_inputs,
    "udp_receiver": packets.datagram_inputs,
    "soft_roce": packets.soft_roce_inputs,
    "ring": packets.ring_inputs,
    "worker_core": memory.worker_core_inputs,
    "p4runtime": messages.p4runtime_inputs,
    "controller": messages.controller_inputs,
    "controller_toml": files.controller_toml_inputs,
    "network_toml": files.network_toml_inputs,
    "network_json": files.network_json_inputs,
    "bmv2_json": files.bmv2_json_inputs,
    "capture": packets.capture_inputs,
}


def examples_of(door: Door) -> Examples:
    """By the name of the file."""
    return {PREFIX + name: data for name, data in EXAMPLES[door.name]().items()}


def stale(door: Door) -> Iterator[str]:
    """Which files of the door's examples are missing, too many, or different."""
    made = examples_of(door)
    there = {path.name: path for path in door.corpus.glob(f"{PREFIX}*")}
    for name in sorted(made.keys() | there.keys()):
        if name not in there or made.get(name) != there[name].read_bytes():
            yield f"{door.name}/{name}"


def write(door: Door) -> None:
    """Replaces the door's examples."""
    door.corpus.mkdir(parents=True, exist_ok=True)
    for path in door.corpus.glob(f"{PREFIX}*"):
        path.unlink()
    for name, data in examples_of(door).items():
        (door.corpus / name).write_bytes(data)


def main() -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.seeds", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    if not parser.parse_args().check:
        for door in DOORS.values():
            write(door)
        return 0
    wrong = [name for door in DOORS.values() for name in stale(door)]
    for name in wrong:
        print(f"fuzz/corpora/{name} is not what python -m fuzz.seeds writes", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
