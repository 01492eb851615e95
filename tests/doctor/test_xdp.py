"""What device xdp lacks on a machine is one line, which says what to do."""

from __future__ import annotations

import errno
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ina import netns
from ina.doctor import xdp
from ina.doctor.finding import Finding
from ina.switch.xdp import capabilities, features, libbpf, pins
from ina.switch.xdp.features import Features
from ina.testing.links import Links, cannot_link
from ina.testing.soft_device import cannot_run_xdp

NO_LINKS = cannot_link()
CANNOT_DROP = "" if shutil.which("setpriv") else "needs setpriv (util-linux)"
WHY = CANNOT_DROP or NO_LINKS or cannot_run_xdp()


def finding(name: str, *interfaces: str) -> Finding:
    (found,) = [it for it in xdp.examine_xdp(interfaces) if it.name == name]
    assert "\n" not in found.get
    return found


@pytest.mark.parametrize(
    ("release", "is_new"), [("5.17.9-x", False), ("5.18.0", True), ("6.1.0-13-amd64", True)]
)
def test_kernels(release: str, is_new: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.release", lambda: release)
    found = finding("kernel, for XDP")
    assert bool(found.found) is is_new
    assert found.get == f"Linux 5.18 or newer: {release}"


@pytest.mark.parametrize(
    ("bits", "lacks"),
    [
        (0, ["CAP_BPF", "CAP_NET_ADMIN", "CAP_PERFMON"]),
        (1 << 39 | 1 << 12, ["CAP_PERFMON"]),
        (1 << 21, ["CAP_NET_ADMIN"]),  # CAP_SYS_ADMIN has the others in it
        (1 << 39 | 1 << 38 | 1 << 12, []),
    ],
)
def test_capabilities(
    bits: int, lacks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = tmp_path / "status"
    status.write_text(f"Name:\tpython\nCapEff:\t{bits:016x}\n")
    monkeypatch.setattr(capabilities, "_STATUS", status)
    assert capabilities.missing() == lacks
    found = finding("capabilities")
    if lacks:
        assert found.get.startswith(f"lacks {', '.join(lacks)}: sudo, or ")
        assert libbpf.why_not().startswith(f"needs {', '.join(lacks)}: run it as root")
    else:
        assert found.verdict == "ok"


@pytest.mark.skipif(bool(WHY), reason=WHY or "it can run")
@pytest.mark.parametrize("dropped", ["bpf", "net_admin", "perfmon"])
def test_root_without_a_capability_is_told_which(dropped: str) -> None:
    keeps = [f"-{name}" for name in (dropped, "sys_admin")]
    command = [*("setpriv", f"--bounding-set={','.join(keeps)}"), sys.executable, "-m", "ina"]
    command += ["switch", "--device", "xdp", "--port", "1=if:lo", "--grpc-addr", "127.0.0.1:0"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    wanted = f"error: device xdp needs CAP_{dropped.upper()}: run it as root, or give it CAP_BPF,"
    assert done.stderr.startswith(wanted)
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (errno.ENOSYS, "this kernel has no BPF maps: Function not implemented"),
        (errno.EPERM, "needs root of the machine: that of a container or a user namespace may not"),
    ],
)
def test_a_kernel_without_bpf(code: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(bpf_map_create=lambda *_: -code)
    monkeypatch.setattr(libbpf, "library", lambda: fake)
    monkeypatch.setattr(capabilities, "missing", list)
    assert libbpf.why_not().startswith(said)


def test_no_bpf_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INA_BPFFS", str(tmp_path))
    assert finding("BPF file system").get.endswith(f"mount -t bpf bpf {tmp_path}")
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"30 23 0:26 / {tmp_path} rw - bpf bpf rw\n")
    monkeypatch.setattr(pins, "_MOUNTS", mounts)
    assert finding("BPF file system").found == str(tmp_path)


@pytest.mark.parametrize(
    ("has", "said"),
    [
        (None, "this kernel tells nothing of drivers' XDP"),
        (Features(is_native=False, takes_redirected=False), "--xdp-mode generic"),
        (Features(is_native=True, takes_redirected=False), "ethtool -K PEER gro on"),
    ],
)
def test_interfaces(has: Features | None, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "features_of", lambda _: has)
    assert said in finding("interface eth7", "eth7").get


def test_an_interface_that_is_not_there() -> None:
    assert finding("interface none", "none").get == "interface none: No such device"


@pytest.mark.skipif(bool(NO_LINKS), reason=NO_LINKS or "it can run")
def test_the_other_end_of_virtual_ethernet() -> None:
    with Links(1, switch_outside=True) as links:
        end = links.switch_ends[1]
        if features.features_of(end) is None:
            pytest.skip("this kernel tells nothing of drivers")
        assert finding(f"interface {end}", end).verdict == "ok"
        with netns.inside(links.namespace):
            netns.set_offload("eth1", netns.SET_GRO, on=False)
        assert "ethtool -K PEER gro on" in finding(f"interface {end}", end).get
        loopback = socket.if_indextoname(1)
        assert "--xdp-mode generic" in finding(f"interface {loopback}", loopback).get
