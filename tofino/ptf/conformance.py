"""ina's conformance cases as PTF tests: under the SDE's run_p4_tests.sh, or under ptf itself.

docs/tofino.md shows how to run them. One test for each topic of ina.testing.cases; every case that
differs is named, with what is missing and what is too much. PTF has the ports, ina has the cases.

Parameters (``--test-params``, or the environment in capitals with INA_ before): southbound
('bfrt' or 'p4runtime'), grpc ('HOST:PORT'), device, values, program, p4info, pipeline, only,
patience (seconds).
"""

# mypy: ignore-errors
# ruff: noqa: N802 (unittest's names)
import os
import time
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace

import ptf
import ptf.testutils as tu
from ptf.base_tests import BaseTest

from ina.testing.case import run_case
from ina.testing.cases import TOPICS
from ina.testing.device import pool_program
from ina.testing.p4runtime_device import BfrtDevice, P4RuntimeDevice

ENVIRONMENT = {"device": "INA_DEVICE_ID"}
DEFAULTS = {
    "bfrt": {"grpc": "127.0.0.1:50052", "device": 0},
    "p4runtime": {"grpc": "127.0.0.1:9559", "device": 1},
}
NOT_ON_TOFINO = ("malformed/*-bytes-behind",)
"""Tofino's ingress does not know a frame's length: see tofino/admission.p4."""
LONGEST_FRAME = 9000
PATIENCE_S = 60.0
"""How long a frame may take: the model forwards a few thousand a second at best."""
_DRAIN_S = 0.001


def parameter(name, default):
    """From --test-params, else from the environment."""
    given = tu.test_params_get().get(name)
    if given is None:
        given = os.environ.get(ENVIRONMENT.get(name, f"INA_{name.upper()}"))
    return default if given in (None, "") else type(default)(given)


class PtfWire:
    """PTF's ports as the cables to a device: see ina.testing.wire.Wire."""

    frame_bytes = range(14, LONGEST_FRAME + 1)

    def __init__(self):
        numbers = sorted({port for device, port, _ in ptf.config["interfaces"] if device == 0})
        if numbers != list(range(numbers[0], numbers[-1] + 1)):
            raise ValueError(f"the fences need ports without a gap between them: {numbers}")
        self.ports = range(numbers[0], numbers[-1] + 1)
        self._plane = ptf.dataplane_instance
        self._plane.flush()

    def send(self, port, data):
        """Sends one frame to a port."""
        self._plane.send(0, port, data)

    def receive(self, timeout_s):
        """What has arrived; waits for the first at most ``timeout_s``."""
        frames = []
        wait_s = timeout_s
        while True:
            found = self._plane.poll(device_number=0, timeout=max(wait_s, _DRAIN_S))
            if not isinstance(found, self._plane.PollSuccess):
                return frames
            frames.append((found.port, bytes(found.packet)))
            wait_s = 0


def make_device(wire):
    """The device that the parameters name."""
    southbound = parameter("southbound", "bfrt")
    if southbound not in DEFAULTS:
        raise ValueError(f"southbound {southbound!r}: expected bfrt or p4runtime")
    address = parameter("grpc", DEFAULTS[southbound]["grpc"])
    number = parameter("device", DEFAULTS[southbound]["device"])
    patience_s = parameter("patience", PATIENCE_S)
    if southbound == "bfrt":
        return BfrtDevice(
            "tofino", address, number, wire, parameter("program", ""), patience_s=patience_s
        )
    p4info, pipeline = parameter("p4info", ""), parameter("pipeline", "")
    if not pipeline:  # run_p4_tests.sh always names a P4Info
        return P4RuntimeDevice(
            "software",
            address,
            number,
            wire,
            cpu_port=False,
            program_of=pool_program,
            patience_s=patience_s,
        )
    program = SimpleNamespace(p4info=Path(p4info), bmv2_json=Path(pipeline))
    return P4RuntimeDevice(
        "tofino",
        address,
        number,
        wire,
        cpu_port=False,
        program_of=lambda values: program,
        patience_s=patience_s,
    )


def chosen(topic, values, *, on_tofino):
    """The cases of a topic that are asked for."""
    left_out = NOT_ON_TOFINO if on_tofino else ()
    wanted = parameter("only", "*").split()
    return [
        case
        for case in topic.cases(values)
        if any(fnmatch(case.name, pattern) for pattern in wanted)
        and not any(fnmatch(case.name, pattern) for pattern in left_out)
    ]


class TopicTest(BaseTest):
    """The cases of one topic."""

    topic = None

    def runTest(self):
        """Runs them all, then tells which differ and which could not run."""
        started_s = time.monotonic()
        with make_device(PtfWire()) as device:
            cases = chosen(self.topic, parameter("values", 64), on_tofino=device.name == "tofino")
            verdicts = [run_case(case, device) for case in cases]
        wrong = [f"{v.case.name}: {line}" for v in verdicts for line in v.differences]
        skipped = [f"{v.case.name} not run: {v.skipped}" for v in verdicts if v.skipped]
        green = sum(verdict.ok for verdict in verdicts)
        print(
            f"{type(self).__name__}: {green} cases green, {len(wrong)} differences,"
            f" {len(skipped)} not run, {time.monotonic() - started_s:.0f} s",
            *skipped,
            sep="\n  ",
        )
        assert not wrong, "\n" + "\n".join(wrong)


for _topic in TOPICS:
    _name = "".join(word.capitalize() for word in _topic.__name__.rpartition(".")[2].split("_"))
    globals()[_name] = type(
        _name, (TopicTest,), {"topic": _topic, "__doc__": _topic.__doc__, "__module__": __name__}
    )
del TopicTest  # PTF would run it
