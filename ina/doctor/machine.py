"""What this machine has of what ina uses, what each part is for, and how to get what is missing."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ina.cache_dir import default_cache_dir
from ina.doctor.finding import Finding, tool
from ina.doctor.kernel import can_make_veth
from ina.doctor.xdp import examine_xdp
from ina.errors import MissingToolError
from ina.tables.bfrt.sde import load_client

WANTED_RECEIVE_BUFFER_BYTES = 8 << 20
"""What a worker asks the kernel for; a smaller grant limits its packets in flight."""
_RMEM_MAX = Path("/proc/sys/net/core/rmem_max")


def examine(interfaces: Sequence[str] = ()) -> list[Finding]:
    """Looks around. Imports nothing heavy but, where there is one, an SDE's client; with root it
    makes a veth pair in a namespace of its own and asks the kernel to check a two-instruction XDP
    program, and leaves neither behind. ``interfaces``: to be ports of device xdp."""
    return [*_core(), *_p4(), *_network(), *examine_xdp(interfaces), *_training()]


def _core() -> Iterator[Finding]:
    native, how = _extension()
    yield Finding("python", platform.python_version(), "everything", "Python 3.10+", required=True)
    yield Finding(
        "native extension",
        native,
        "hosts, ports",
        how,
        required=True,
    )
    compiler = tool(os.environ.get("INA_CC") or "cc")
    yield Finding(
        "C compiler", compiler, "the soft switch", "apt install gcc libc6-dev", required=True
    )
    trouble = _cache_trouble()
    yield Finding(
        "program cache",
        "" if trouble else str(default_cache_dir()),
        "the soft switch",
        trouble,
        required=True,
    )
    cxx = tool(os.environ.get("CXX") or "c++")
    yield Finding("C++ compiler", cxx, "building ina from source", "apt install g++")


def _extension() -> tuple[str, str]:
    """Where it is, else how to get it."""
    try:
        from ina.extension import check
    except MissingToolError as error:
        return "", str(error)
    return check(), ""


def _p4() -> Iterator[Finding]:
    p4lang = "build it from github.com/p4lang and put it on PATH"
    p4c = tool(os.environ.get("INA_P4C") or "p4c-bm2-ss")
    how = "package p4lang-p4c, container p4lang/p4c, or a build: see docs/own_p4.md"
    yield Finding("p4c", p4c, "ina p4 compile", how)
    bmv2 = tool("simple_switch_grpc")
    yield Finding("BMv2", bmv2, "the P4 reference switch", f"{p4lang} (PI, behavioral-model)")
    tofino = tool(os.environ.get("INA_P4C_TOFINO") or "p4c-barefoot", "bf-p4c")
    yield Finding("Tofino compiler", tofino, "Tofino builds", f"{p4lang} (p4c, ENABLE_TOFINO)")
    bfas = tool(os.environ.get("INA_BFAS") or "bfas")
    yield Finding("Tofino assembler", bfas, "loading Tofino builds", f"{p4lang} (p4c's)")
    yield Finding("Tofino SDE", _sde(), "a Tofino switch or model", "set SDE_INSTALL to your SDE")
    client, why = _bfrt_client()
    yield Finding("BFRuntime client", client, 'southbound = "bfrt"', why)
    shell = _package("p4runtime_sh", "p4runtime-shell")
    yield Finding("p4runtime-shell", shell, "P4Runtime by hand", "pip, in a venv of its own")


def _network() -> Iterator[Finding]:
    root = "yes" if os.geteuid() == 0 else ""
    yield Finding("root", root, "AF_PACKET ports, namespaces", "sudo")
    why_no_veth = can_make_veth()
    veth = "" if why_no_veth else "can be made"
    yield Finding("veth", veth, "networks on one machine", why_no_veth or "")
    yield Finding("Mininet", tool("mn"), "BMv2 beside ina emulate", "apt install mininet")
    yield Finding("iperf3", tool("iperf3"), "background traffic in tests", "apt install iperf3")
    yield Finding("tshark", tool("tshark"), "reading captures", "apt install tshark")
    yield Finding(
        "UDP receive buffer",
        _receive_buffer(),
        "full windows",
        f"sysctl -w net.core.rmem_max={WANTED_RECEIVE_BUFFER_BYTES}",
    )


def _training() -> Iterator[Finding]:
    torch = _package("torch", "torch")
    yield Finding("torch", torch, "import ina.torch", "pip install torch")
    gpu = "/dev/nvidiactl" if Path("/dev/nvidiactl").exists() else ""
    yield Finding("NVIDIA driver", gpu, "CUDA tensors", "the vendor's driver")
    sklearn = _package("sklearn", "scikit-learn")
    yield Finding("scikit-learn", sklearn, "ina demo", "pip install scikit-learn matplotlib")


def _package(module: str, distribution: str) -> str:
    if importlib.util.find_spec(module) is None:
        return ""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return "present"


def _cache_trouble() -> str:
    """Imported here: without an extension that can be used there is no target to ask."""
    try:
        from ina.switch.targets import default_target
    except MissingToolError as error:
        return str(error)
    return default_target().trouble()


def _sde() -> str:
    folder = os.environ.get("SDE_INSTALL", "")
    return folder if folder and Path(folder).is_dir() else ""


def _bfrt_client() -> tuple[str, str]:
    """Where it is, after importing it as the controller does; or why it cannot be used."""
    try:
        return str(load_client().__file__), ""
    except MissingToolError as error:
        return "", str(error)


def _receive_buffer() -> str:
    if not sys.platform.startswith("linux"):
        return ""
    try:
        limit = int(_RMEM_MAX.read_text())
    except (OSError, ValueError):
        return ""
    return f"{limit} bytes" if limit >= WANTED_RECEIVE_BUFFER_BYTES else ""
