"""BMv2 (``simple_switch_grpc``) as a device, on virtual cables in a namespace of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType

from ina.errors import MissingToolError
from ina.netns import within
from ina.p4 import names
from ina.tables.entities import ProgramFiles
from ina.testing.device import Ability, ProgramOf
from ina.testing.errors import DeviceError
from ina.testing.links import Links, cannot_link
from ina.testing.p4runtime_device import P4RuntimeDevice
from ina.testing.soft_device import PORTS

BMV2 = "simple_switch_grpc"
_DEVICE_ID = 1
_STOP_S = 10.0
_MOST_RSS_BYTES = 2 << 30


class Bmv2Device(P4RuntimeDevice):
    """A ``simple_switch_grpc`` process. P4Runtime goes over a UNIX socket, so no port is taken."""

    def __init__(
        self,
        mode: str = names.DEFAULT_MODE,
        *,
        ports: int = PORTS,
        log: Path | None = None,
        program_of: ProgramOf | None = None,
    ) -> None:
        """``log``: where BMv2 writes what it does with every packet (slow); None: nowhere."""
        self._links = Links(ports)
        self._log = log
        self._open = ExitStack()  # cables
        self._process = ExitStack()
        self._pid = 0
        super().__init__(
            "bmv2",
            "",
            _DEVICE_ID,
            self._links.wire,
            mode=mode,
            program_of=program_of,
            patience_s=30.0,
        )
        self.abilities -= {Ability.GROWTH}  # behind each packet its buffer has room for 512 bytes

    def __enter__(self) -> Bmv2Device:
        with ExitStack() as undo:
            undo.enter_context(self._links)
            self._start()
            self._open = undo.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._process.close()
        self._open.close()

    def reset(self, values: int) -> None:
        """Loads its program anew, into a new process if the old one has kept too much of others."""
        self._renew()
        super().reset(values)

    def load(self, program: ProgramFiles) -> None:
        """Loads any program, as :meth:`reset` does its own."""
        self._renew()
        super().load(program)

    def _renew(self) -> None:
        """Two of these switches, and the kernel ends one for want of memory: a program of 1,024
        values has 8 million registers, and BMv2 gives back little of what it had before."""
        if rss_bytes(self._pid) > _MOST_RSS_BYTES:
            self._process.close()
            self._start()

    def _start(self) -> None:
        """Starts the process on the cables that are there, and connects to it."""
        binary = find_bmv2()
        with ExitStack() as undo:
            folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ina-bmv2-")))
            socket = folder / "p4runtime"
            self._address = f"unix:{socket}"
            process = subprocess.Popen(
                self._command(binary, socket),
                stdout=(folder / "out").open("wb"),
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
            self._pid = process.pid
            undo.callback(_stop, process)
            try:
                super().__enter__()
            except DeviceError as error:
                said = (folder / "out").read_text(errors="replace").strip().splitlines()
                why = said[-1] if said else "it said nothing"
                raise DeviceError(f"{error}; {BMV2}: {why}") from None
            undo.callback(super().__exit__, None, None, None)
            self._process = undo.pop_all()

    def _command(self, binary: Path, socket: Path) -> list[str]:
        ends = [f"-i{port}@{end}" for port, end in self._links.switch_ends.items()]
        log = (
            ["-Lerror"]
            if self._log is None
            else ["--log-file", str(self._log), "--log-flush", "-Ltrace"]
        )
        return [
            *("setpriv", "--pdeathsig", "KILL"),  # a kill of ours takes it along
            *within(self._links.namespace, [str(binary), "--no-p4"]),
            *("--device-id", str(_DEVICE_ID), *log, *ends),
            *("--", "--grpc-server-addr", f"unix:{socket}", "--cpu-port", str(names.CPU_PORT)),
        ]


def rss_bytes(pid: int) -> int:
    """What a process has in memory; 0 for one that has ended."""
    try:
        pages = Path(f"/proc/{pid}/statm").read_text().split()[1]
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def find_bmv2() -> Path:
    """What INA_BMV2 names, else simple_switch_grpc on PATH. Raises MissingToolError."""
    named = os.environ.get("INA_BMV2")
    found = shutil.which(named or BMV2)
    if found is not None:
        return Path(found)
    if named:
        raise MissingToolError(f"INA_BMV2={named} is not an executable file")
    raise MissingToolError(
        f"{BMV2} is not on PATH and INA_BMV2 is not set; build BMv2 with P4Runtime "
        "(https://github.com/p4lang/behavioral-model, targets/simple_switch_grpc)"
    )


def cannot_run_bmv2() -> str:
    """Why BMv2 cannot be run here; empty: it can."""
    try:
        find_bmv2()
    except MissingToolError as error:
        return str(error)
    return cannot_link()


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
        return
    process.kill()
    process.wait()  # it has gigabytes to give back, which takes a busy machine longer
