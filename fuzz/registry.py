"""All doors by name, and how each is entered from Python."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from fuzz.pipeline_setup import pipeline_setup, program_json
from ina.switch.pipeline import Pipeline
from ina.switch.targets import default_target
from ina.testing import doors as native

CORPORA = Path(__file__).parent / "corpora"
PIPELINE = "pipeline"
"""The C++ door that needs a compiled program."""


@dataclass(frozen=True)
class Door:
    """One way in."""

    name: str
    what: str
    """The bytes that come through it, for people."""
    most_bytes: int
    """Of an input while fuzzing."""
    is_native: bool = True

    @property
    def corpus(self) -> Path:
        """The folder of its checked-in inputs: examples, and what once broke a promise."""
        return CORPORA / self.name

    def inputs(self) -> list[Path]:
        """Of the corpus, in order of their names."""
        return sorted(self.corpus.iterdir())


DOORS = {
    door.name: door
    for door in (
        Door("frame", "frames at the switch's ports: Ethernet, IPv4, UDP, checksums", 2048),
        Door("offload", "frames of a packet socket: missing checksums, many in one", 4096),
        Door("udp_port", "datagrams and trains at a UDP port of the switch", 4096),
        Door(PIPELINE, "frames at the compiled pool program", 4096),
        Door("pcap_file", "capture files at a port of the switch", 4096),
        Door("shm_switch", "a worker's half of shared memory, at the switch", 2048),
        Door("shm_worker", "the switch's half of shared memory, at a worker", 2048),
        Door("udp_receiver", "datagrams and trains at a worker's socket", 4096),
        Door("soft_roce", "datagrams at a worker's endpoint of RoCEv2", 4096),
        Door("ring", "frames at a worker's place in a ring of RoCEv2", 4096),
        Door("worker_core", "results at a worker", 2048),
        Door("p4runtime", "P4Runtime messages at the soft switch", 4096, False),
        Door("controller", "gRPC messages of workers and operators at the controller", 4096, False),
        Door("controller_toml", "the controller's configuration", 4096, False),
        Door("network_toml", "emulated networks (TOML)", 4096, False),
        Door("network_json", "emulated networks of the p4lang tutorials (JSON)", 4096, False),
        Door(
            "bmv2_json",
            "compiled P4 programs (BMv2 JSON), up to the C made of them",
            1 << 17,
            False,
        ),
        Door("capture", "capture files at ina pcap: pcap, pcapng", 4096, False),
        # A topology file of racks gets its door here, and a module beside network_toml.
    )
}


def enter_of(door: Door) -> Callable[[bytes], None]:
    """What enters the door; a C++ one through the extension."""
    if door.name == PIPELINE:
        return _enter_pipeline
    if door.is_native:
        return partial(native.enter, door.name)
    enter: Callable[[bytes], None] = importlib.import_module(f"fuzz.doors.{door.name}").enter
    return enter


@cache
def _program() -> tuple[Pipeline, bytes]:
    return default_target().load(program_json()), pipeline_setup()


def _enter_pipeline(data: bytes) -> None:
    pipeline, setup = _program()
    native.enter_pipeline(pipeline.native[0], setup, data)
