"""The kernel as a target: a program's plan as two XDP programs and their maps."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from ina.switch.emit_ebpf.emit import EbpfSource, emit_ebpf
from ina.switch.errors import CompilerMissingError, UnsupportedProgramError
from ina.switch.ir import Program
from ina.switch.keeper import Keeper
from ina.switch.port_set import Impairment, PortSet
from ina.switch.ports import Port
from ina.switch.target import Image, ReadProgram, Target
from ina.switch.xdp.compile import UnfitError, compiled, find_clang
from ina.switch.xdp.libbpf import RefusedError, library, why_not
from ina.switch.xdp.links import XdpMode
from ina.switch.xdp.pin import Pin
from ina.switch.xdp.pipeline import XdpPipeline
from ina.switch.xdp.ports import XdpPorts
from ina.switch.xdp.refusals import refusal

_log = logging.getLogger(__name__)


class XdpImage(Image):
    """An object file."""

    def __init__(
        self,
        program: Program,
        source: EbpfSource,
        path: Path,
        *,
        at_ports: bool,
        pin: Pin | None = None,
        otherwise: Callable[[str], XdpImage] | None = None,
        instead: str = "",
    ) -> None:
        """``otherwise``: the program without a main path, if the verifier refuses this one, for a
        reason; ``instead``: the reason why this is that one."""
        super().__init__(program)
        self._otherwise, self._instead = otherwise, instead
        self._source, self._path, self._at_ports, self._pin = source, path, at_ports, pin

    def power_on(self) -> XdpPipeline:
        """See :meth:`Image.power_on`. Raises XdpError; UnsupportedProgramError: the kernel's
        verifier refuses it; the message has the P4 place, and the file of the log."""
        try:
            pipeline = XdpPipeline.power_on(
                self.program, self._source, self._path, at_ports=self._at_ports
            )
        except RefusedError as error:
            found = refusal(error.log, self._source.text)
            if self._otherwise is not None:
                return self._otherwise(found.construct).power_on()
            log = self._path.with_suffix(".log")
            log.write_text(error.log)
            construct = f"{found.construct}, on device xdp (verifier's log: {log})"
            raise UnsupportedProgramError(construct, found.source) from None
        if self._instead:
            name = self.program.name or "the program"
            _log.warning("%s: every packet is copied: its main path has %s", name, self._instead)
        return pipeline

    def take_over(self) -> XdpPipeline:
        """See :meth:`Image.take_over`. Raises PinError, XdpError."""
        assert self._pin is not None
        kernel = self._pin.programs()
        try:
            return XdpPipeline(self.program, self._source, kernel, self._path)
        except BaseException:
            kernel.close()
            raise


def _named(program: ReadProgram) -> bytes:
    """What tells its object file from others."""
    return bytes([program.has_main_path]) + program.text


class XdpTarget(Target):
    """This machine's kernel, which root may give programs to (CAP_BPF and CAP_NET_ADMIN)."""

    def __init__(
        self,
        cache_dir: Path | None = None,
        *,
        at_ports: bool = False,
        mode: XdpMode = XdpMode.native,
        pin: Pin | None = None,
    ) -> None:
        """``cache_dir``: None: ``$XDG_CACHE_HOME/ina`` or ``~/.cache/ina``. ``at_ports``: its
        pipelines can be attached to interfaces, which takes the kernel longer to look at; ``mode``:
        how. ``pin``: what is attached outlives this process."""
        self._cache_dir, self._at_ports, self._mode, self._pin = cache_dir, at_ports, mode, pin

    @property
    def keeper(self) -> Keeper | None:
        """See :attr:`Target.keeper`."""
        return self._pin

    def build(self, program: ReadProgram) -> XdpImage:
        """Without the main path, if the kernel cannot have it. Raises UnsupportedProgramError,
        CompilerMissingError, CompilationError, XdpError."""
        library()
        general = replace(program, has_main_path=False)
        if not program.has_main_path:
            return self._image(general)
        try:
            return self._image(program, lambda why: self._image(general, instead=why))
        except UnsupportedProgramError as error:
            return self._image(general, instead=error.construct)

    def _image(
        self,
        program: ReadProgram,
        otherwise: Callable[[str], XdpImage] | None = None,
        instead: str = "",
    ) -> XdpImage:
        try:
            source = emit_ebpf(program.plan)
            path = compiled(_named(program), lambda: source.text, self._cache_dir)
        except UnsupportedProgramError as error:
            raise UnsupportedProgramError(
                f"{error.construct}, on device xdp", error.source
            ) from None
        except UnfitError as error:
            found = refusal(str(error), source.text)
            raise UnsupportedProgramError(
                f"{found.construct}, on device xdp", found.source
            ) from None
        return XdpImage(
            program.program,
            source,
            path,
            at_ports=self._at_ports,
            pin=self._pin,
            otherwise=otherwise,
            instead=instead,
        )

    def trouble(self) -> str:
        """Of libbpf, the kernel, or the compiler."""
        try:
            find_clang()
        except CompilerMissingError as error:
            return str(error)
        return why_not()

    def ports(self, specs: Sequence[Port], cpu_port: int, impairment: Impairment) -> PortSet:
        """See :meth:`Target.ports`: interfaces of this machine.

        Raises UnsupportedProgramError: this target's pipelines run frames in memory alone.
        """
        if not self._at_ports:
            raise UnsupportedProgramError("ports, of a device xdp that is asked for none")
        return XdpPorts(specs, cpu_port, impairment, mode=self._mode, pin=self._pin)
