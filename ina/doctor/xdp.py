"""What ``ina switch --device xdp`` needs: of the kernel, of this process, and of interfaces."""

from __future__ import annotations

import ctypes.util
import os
import platform
import re
from collections.abc import Iterator, Sequence

from ina.doctor.finding import Finding, tool
from ina.doctor.kernel import can_load_xdp

USED_FOR = "ina switch --device xdp"
LEAST_KERNEL = (5, 18)
"""bpf_xdp_load_bytes and bpf_xdp_store_bytes."""


def examine_xdp(interfaces: Sequence[str] = ()) -> Iterator[Finding]:
    """``interfaces``: to be its ports. Attaches nothing."""
    yield _kernel()
    yield _capabilities()
    why_not = can_load_xdp()
    yield Finding("XDP", "" if why_not else "loads", USED_FOR, why_not)
    clang = tool(os.environ.get("INA_CLANG") or "clang")
    yield Finding("clang, for BPF", clang, USED_FOR, "apt install clang")
    libbpf = ctypes.util.find_library("bpf") or ""
    yield Finding("libbpf", libbpf, USED_FOR, "apt install libbpf1")
    yield _file_system()
    yield from map(_interface, interfaces)


def _kernel() -> Finding:
    release = platform.release()
    numbers = re.match(r"(\d+)\.(\d+)", release)
    is_new = numbers is not None and tuple(map(int, numbers.groups())) >= LEAST_KERNEL
    wanted = "Linux {}.{} or newer".format(*LEAST_KERNEL)
    return Finding("kernel, for XDP", release if is_new else "", USED_FOR, f"{wanted}: {release}")


def _capabilities() -> Finding:
    """Imported here, as below: without an extension that can be used there is no target."""
    from ina.switch.xdp import capabilities

    lacks = capabilities.missing()
    how = f"lacks {', '.join(lacks)}: sudo, or give it {capabilities.needed()}"
    return Finding("capabilities", "" if lacks else capabilities.needed(), USED_FOR, how)


def _file_system() -> Finding:
    from ina.switch.xdp.pins import PinError, bpf_file_system

    used_for = f"{USED_FOR} --pin"
    try:
        return Finding("BPF file system", str(bpf_file_system()), used_for, "")
    except PinError as error:
        return Finding("BPF file system", "", used_for, str(error))


def _interface(name: str) -> Finding:
    from ina.switch.xdp.features import LOSES, features_of
    from ina.switch.xdp.libbpf import XdpError

    what = f"interface {name}"
    try:
        has = features_of(name)
    except XdpError as error:
        return Finding(what, "", USED_FOR, str(error))
    if has is None:
        how = "this kernel tells nothing of drivers' XDP, Linux 6.3 does: try it"
        return Finding(what, "", USED_FOR, how)
    if not has.is_native:
        return Finding(what, "", USED_FOR, "its driver has no native XDP: --xdp-mode generic")
    if not has.takes_redirected:
        how = f"loses what leaves by it: {LOSES}"
        return Finding(what, "", USED_FOR, how)
    return Finding(what, "native XDP, sends what is redirected to it", USED_FOR, "")
