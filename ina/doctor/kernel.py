"""What the kernel lets this process do, found out by doing it and leaving nothing behind."""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import struct
import subprocess

_TIMEOUT_S = 5.0
_BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
_BPF_PROG_LOAD = 5
_BPF_PROG_TYPE_XDP = 6
# r0 = 2 (XDP_PASS); exit
_PASS_PROGRAM = struct.pack("<BBhi", 0xB7, 0, 0, 2) + struct.pack("<BBhi", 0x95, 0, 0, 0)


def can_make_veth() -> str:
    """Why no veth pair can be made, or an empty string. Tries it, in a network namespace."""
    if os.geteuid() != 0:
        return "needs root"
    if not (shutil.which("unshare") and shutil.which("ip")):
        return "apt install iproute2 util-linux"
    add = ["ip", "link", "add", "ina0", "type", "veth", "peer", "name", "ina1"]
    try:
        result = subprocess.run(
            ["unshare", "--net", *add],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"cannot be tried: {error}"
    return "" if result.returncode == 0 else " ".join(result.stderr.split())


def can_load_xdp() -> str:
    """Why the kernel refuses an XDP program, or an empty string. Loads one that passes everything,
    attaches it nowhere and closes it."""
    number = _BPF_SYSCALL.get(platform.machine())
    if number is None or platform.system() != "Linux":
        return f"not tried on {platform.system()} {platform.machine()}"
    program = ctypes.create_string_buffer(_PASS_PROGRAM, len(_PASS_PROGRAM))
    licence = ctypes.create_string_buffer(b"Apache-2.0")
    # union bpf_attr of BPF_PROG_LOAD: type, instructions, their address, licence, no log
    attributes = ctypes.create_string_buffer(
        struct.pack(
            "<IIQQIIQ",
            *(_BPF_PROG_TYPE_XDP, len(_PASS_PROGRAM) // 8),
            *(ctypes.addressof(program), ctypes.addressof(licence), 0, 0, 0),
        ).ljust(128, b"\0"),
        128,
    )
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.syscall(number, _BPF_PROG_LOAD, attributes, len(attributes))
    if descriptor < 0:
        return f"the kernel refuses: {os.strerror(ctypes.get_errno())}"
    os.close(descriptor)
    return ""
