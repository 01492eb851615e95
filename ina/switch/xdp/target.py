"""The kernel as a target: a program's plan as two XDP programs and their maps."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ina.switch.emit_ebpf.emit import EbpfSource, emit_ebpf
from ina.switch.errors import CompilerMissingError, UnsupportedProgramError
from ina.switch.ir import Program
from ina.switch.passes.plan import make_plan
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import Port
from ina.switch.target import Image, ReadProgram, Target
from ina.switch.xdp.compile import compiled, find_clang
from ina.switch.xdp.libbpf import RefusedError, library, why_not
from ina.switch.xdp.pipeline import XdpPipeline


class XdpImage(Image):
    """An object file."""

    def __init__(self, program: Program, source: EbpfSource, path: Path) -> None:
        super().__init__(program)
        self._source, self._path = source, path

    def power_on(self) -> XdpPipeline:
        """See :meth:`Image.power_on`. Raises XdpError; UnsupportedProgramError: the kernel's
        verifier refuses it, and the log is beside the object file."""
        try:
            return XdpPipeline(self.program, self._source, self._path, self._path.with_suffix(".c"))
        except RefusedError as error:
            log = self._path.with_suffix(".log")
            log.write_text(error.log)
            raise UnsupportedProgramError(f"what {error} ({log})") from None


class XdpTarget(Target):
    """This machine's kernel, which root may give programs to (CAP_BPF and CAP_NET_ADMIN)."""

    def __init__(self, cache_dir: Path | None = None) -> None:
        """``cache_dir``: None: ``$XDG_CACHE_HOME/ina`` or ``~/.cache/ina``."""
        self._cache_dir = cache_dir

    def build(self, program: ReadProgram) -> XdpImage:
        """Raises UnsupportedProgramError, CompilerMissingError, CompilationError, XdpError."""
        library()
        plan = make_plan(program.program, main_path=False)
        try:
            source = emit_ebpf(plan)
        except UnsupportedProgramError as error:
            raise UnsupportedProgramError(
                f"{error.construct}, on device xdp", error.source
            ) from None
        path = compiled(program.text, lambda: source.text, self._cache_dir)
        return XdpImage(program.program, source, path)

    def trouble(self) -> str:
        """Of libbpf, the kernel, or the compiler."""
        try:
            find_clang()
        except CompilerMissingError as error:
            return str(error)
        return why_not()

    def ports(self, specs: Sequence[Port], cpu_port: int, impairment: Impairment) -> PortSet:
        """Raises UnsupportedProgramError: its ports are interfaces of the kernel."""
        raise UnsupportedProgramError("ports of this process on device xdp")
